"""`overlay broker`, `overlay bdn` and `overlay brokers`: who is found, and who helps with it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nodes.cli.asking import NodeName, ask_each
from nodes.cli.output import AsJson, LogFormat, LogLevel, Profile, counted, print_json, print_table
from nodes.control import ControlError
from nodes.peer_options import PeerOptions
from nodes.settings import DEFAULT_PROFILE

Words = list[str] | None

Name = Annotated[str, typer.Option(help="The node's name; its keys must be issued.")]
Zone = Annotated[str, typer.Option(help="The zone to join.")]
Overlay = Annotated[str, typer.Option(help="The overlay's name, when insecure.")]
Seeds = Annotated[Words, typer.Option("--seed", help="HOST:PORT of a peer to meet; repeatable.")]
Config = Annotated[Words, typer.Option(help="A TOML file of settings; repeatable.")]
Sets = Annotated[Words, typer.Option("--set", help="section.key=value; repeatable.")]
Bind = Annotated[Words, typer.Option(help="HOST:PORT to listen at.")]
Advertise = Annotated[Words, typer.Option(help="HOST:PORT that peers are told.")]
Keys = Annotated[str, typer.Option(help="Where keys lie.", show_default="as `overlay keys`")]
State = Annotated[str, typer.Option(help="Where to keep what outlives the process.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="No keys: at loopback, or by --bind in a closed lab.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(broker)
    app.command()(bdn)
    app.command()(brokers)


def broker(
    bdn: Annotated[Words, typer.Option(help="HOST:PORT of a BDN; repeatable.")] = None,
    link: Annotated[Words, typer.Option(help="HOST:PORT of a broker to link to.")] = None,
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
    """Run a broker that clients can find; its first line is its address."""
    from nodes.broker import BrokerNode
    from nodes.peer_process import run

    told = (name, zone, overlay, seed, profile, config, sets, bind, advertise, keys, state)
    options = peer_options(*told, insecure, json, log_format, log_level)
    raise typer.Exit(run(options, lambda made: BrokerNode(made, bdns=bdn or (), links=link or ())))


def bdn(
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
    """Run a broker discovery node: it lists brokers and passes requests on to them."""
    from nodes.bdn import BdnNode
    from nodes.peer_process import run

    told = (name, zone, overlay, seed, profile, config, sets, bind, advertise, keys, state)
    raise typer.Exit(run(peer_options(*told, insecure, json, log_format, log_level), BdnNode))


def peer_options(*told: Any) -> PeerOptions:
    """As `overlay peer` would have read them."""
    keys = ("name", "zone", "overlay", "seed", "profile", "config", "set", "bind", "advertise")
    names = (*keys, "keys", "state", "insecure", "json", "log_format", "log_level")
    plain: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in zip(names, told, strict=True)
        if value is not None
    }
    return PeerOptions(**plain)


def brokers(node: NodeName = None, json: AsJson = False) -> None:
    """Show the brokers that a BDN of this machine lists."""
    bdns = [one["name"] for one in ask_each(node, "status") if "bdn" in one["protocols"]]
    if not bdns:
        who = "no node of this machine is a BDN" if node is None else f"{node!r} is no BDN"
        raise ControlError(f"{who}: start one with `overlay bdn`")
    tables = [table for name in bdns for table in ask_each(name, "bdn")]
    if json:
        print_json({"bdns": tables})
        return
    for table in tables:
        rows = [
            (
                one["name"],
                one["address"],
                "?" if one["round_trip"] is None else f"{one['round_trip'] * 1000:.2f} ms",
                one["region"] or "-",
                one["institution"] or "-",
                ", ".join(one["links"]) or "-",
            )
            for one in table["brokers"]
        ]
        title = f"{counted(len(rows), 'broker')}, as {table['node']} knows them"
        columns = ("broker", "address", "round trip", "region", "institution", "links")
        print_table(columns, rows, title=title)
