"""`overlay peer`: help, completion and errors; a plain command line never comes here."""

import os
import sys
from typing import Annotated

import typer

from nodes.cli.output import AsJson, LogFormat, LogLevel, Profile
from nodes.peer_options import PeerOptions
from nodes.settings import DEFAULT_PROFILE
from nodes.spawning import peer_command, peer_environment

Words = list[str] | None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(peer)


def peer(
    name: Annotated[str, typer.Option(help="The node's name; its keys must be issued.")] = "",
    zone: Annotated[str, typer.Option(help="The zone to join.")] = "",
    overlay: Annotated[str, typer.Option(help="The overlay's name, when insecure.")] = "",
    seed: Annotated[Words, typer.Option(help="HOST:PORT of a peer to meet; repeatable.")] = None,
    profile: Profile = DEFAULT_PROFILE,
    config: Annotated[Words, typer.Option(help="A TOML file of settings; repeatable.")] = None,
    set: Annotated[Words, typer.Option(help="section.key=value; repeatable.")] = None,
    bind: Annotated[Words, typer.Option(help="HOST:PORT or ipc://PATH to listen at.")] = None,
    advertise: Annotated[Words, typer.Option(help="HOST:PORT that peers are told.")] = None,
    keys: Annotated[
        str, typer.Option(help="Where keys lie.", show_default="as `overlay keys`")
    ] = "",
    state: Annotated[str, typer.Option(help="Where to keep what outlives the process.")] = "",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="No keys: at loopback, or by --bind in a closed lab.")
    ] = False,
    events: Annotated[
        bool, typer.Option("--events", help="Print a line when a link or a member comes or goes.")
    ] = False,
    trace: Annotated[
        str, typer.Option(help="Record traces: delivery, messages or all.", show_default="off")
    ] = "",
    trace_dir: Annotated[
        str, typer.Option(help="Where traces are written.", show_default="./traces")
    ] = "",
    share_machine: Annotated[
        bool,
        typer.Option("--share-machine", help="Let others find this machine's CPUs, memory, load."),
    ] = False,
    dashboard: Annotated[
        str, typer.Option(help="HOST:PORT of a web page about it.", show_default="none")
    ] = "",
    dashboard_token: Annotated[
        str, typer.Option(help="A file with the token of that page.", show_default="made up")
    ] = "",
    allow_actions: Annotated[
        bool, typer.Option("--allow-actions", help="Let nodes leave and record, from that page.")
    ] = False,
    supervisor: Annotated[
        bool,
        typer.Option("--supervisor", help="Look after zones instead of being a member of one."),
    ] = False,
    json: AsJson = False,
    log_format: LogFormat = "text",
    log_level: LogLevel = "warning",
) -> None:
    """Run a peer until it is stopped; its first line is its address."""
    options = PeerOptions(
        name=name,
        zone=zone,
        overlay=overlay,
        seed=tuple(seed or ()),
        profile=profile,
        config=tuple(config or ()),
        set=tuple(set or ()),
        bind=tuple(bind or ()),
        advertise=tuple(advertise or ()),
        keys=keys,
        state=state,
        insecure=insecure,
        events=events,
        trace=trace,
        trace_dir=trace_dir,
        share_machine=share_machine,
        dashboard=dashboard,
        dashboard_token=dashboard_token,
        allow_actions=allow_actions,
        supervisor=supervisor,
        json=json,
        log_format=log_format,
        log_level=log_level,
    )
    # A fresh interpreter: what the command line needed to be parsed is 8 MB that a node does not.
    sys.stdout.flush()
    os.execve(sys.executable, peer_command(options), peer_environment())
