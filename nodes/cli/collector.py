"""`overlay collector`: gather the traces of all peers in one folder."""

from pathlib import Path
from typing import Annotated

import typer

from nodes.cli.brokers import (
    Advertise,
    Bind,
    Config,
    Insecure,
    Keys,
    Name,
    Overlay,
    Seeds,
    Sets,
    State,
    Zone,
    peer_options,
)
from nodes.cli.output import AsJson, LogFormat, LogLevel, Profile
from nodes.settings import DEFAULT_PROFILE


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(collector)


def collector(
    dir: Annotated[Path, typer.Option("--dir", help="Where all traces go.")] = Path("collected"),
    name: Name = "",
    zone: Zone = "",
    overlay: Overlay = "",
    seed: Seeds = None,
    profile: Profile = DEFAULT_PROFILE,
    config: Config = None,
    sets: Sets = None,
    bind: Bind = None,
    advertise: Advertise = None,
    keys: Keys = "",
    state: State = "",
    insecure: Insecure = False,
    json: AsJson = False,
    log_format: LogFormat = "text",
    log_level: LogLevel = "warning",
) -> None:
    """Gather the traces of all peers that hand them over (traces.ship); prints its address."""
    from nodes.collector import Collector
    from nodes.peer_process import run

    told = (name, zone, overlay, seed, profile, config, sets, bind, advertise, keys, state)
    options = peer_options(*told, insecure, json, log_format, log_level)
    raise typer.Exit(run(options, lambda made: Collector(made, dir.expanduser())))
