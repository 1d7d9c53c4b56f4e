"""`overlay discover`: the nearest broker, and why it is that one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodes.cli.output import AsJson, Profile, complain, print_json, print_table
from nodes.settings import DEFAULT_PROFILE

if TYPE_CHECKING:
    from nodes.discovery import Broker, Finder
    from protocols.discovery import BrokerMoved, Candidate

Words = list[str] | None

COLUMNS = (
    *("broker", "address", "est. delay", "load weight", "ping p50", "least", "jitter", "pings"),
    "verdict",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(discover)


def discover(
    bdn: Annotated[Words, typer.Option(help="HOST:PORT of a BDN; repeatable, in order.")] = None,
    multicast: Annotated[
        bool, typer.Option("--multicast", help="Ask by multicast at once, not only as a last way.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show all candidates, and why each other one lost.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on; tell when another broker is the better one.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.2, max=60, help="Seconds, at most.", show_default="discovery.timeout"),
    ] = None,
    name: Annotated[str, typer.Option(help="Whose keys to use.")] = "",
    overlay: Annotated[str, typer.Option(help="The overlay's name, when insecure.")] = "",
    keys: Annotated[Path | None, typer.Option(help="Where keys lie.")] = None,
    state: Annotated[
        Path | None, typer.Option(help="A folder that remembers the brokers found last.")
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    config: Annotated[Words, typer.Option(help="A TOML file of settings; repeatable.")] = None,
    sets: Annotated[Words, typer.Option("--set", help="section.key=value; repeatable.")] = None,
    bind: Annotated[Words, typer.Option(help="HOST:PORT where answers reach us.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Without keys.")] = False,
    json: AsJson = False,
) -> None:
    """Find the nearest broker: by BDNs, by those found last, or by multicast."""
    import trio

    from nodes.discovery import Finder

    finder = Finder.open(
        *(bdn or ()),
        multicast=multicast,
        timeout=timeout,
        state=state,
        name=name,
        overlay=overlay,
        keys=keys,
        profile=profile,
        files=config or (),
        sets=sets or (),
        bind=bind or (),
        insecure=insecure,
    )
    try:
        if watch:
            trio.run(_watch, finder, json)
        else:
            found = trio.run(_once, finder)
            _tell(found, explain=explain, json=json)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


async def _once(finder: Finder) -> Broker:
    async with finder:
        return await finder.discover()


async def _watch(finder: Finder, json: bool) -> None:
    from protocols.discovery import NoBrokerFound

    async with finder:
        finder.node.listen((NoBrokerFound,), lambda end: complain(end.reason))
        async for move in finder.watch():
            _tell_move(move, json=json)


def _tell_move(move: BrokerMoved, *, json: bool) -> None:
    if json:
        print_json({"old": move.old or None, "reason": move.reason, **_facts(move.new)}, flush=True)
    else:
        old = f"{move.old} -> " if move.old else ""
        where = ", ".join(move.new.endpoints)
        print(f"{old}{move.new.name} at {where}: {move.reason}", flush=True)


def _tell(found: Broker, *, explain: bool, json: bool) -> None:
    if json:
        phases = found.phases
        print_json(
            {
                "broker": found.name,
                "endpoints": found.endpoints,
                "round_trip": found.round_trip,
                "seconds": {
                    "waiting": phases.waiting,
                    "choosing": phases.choosing,
                    "pinging": phases.pinging,
                    "total": phases.total,
                    "last_response": phases.last_response,
                },
                "asked": found.sources,
                "attempts": found.attempts,
                "candidates": [*map(_facts, found.candidates)],
            }
        )
        return
    if explain:
        title = f"{found.name} is the nearest of {len(found.candidates)}"
        print_table(COLUMNS, [*map(_row, found.candidates)], title=title)
        phases = found.phases
        print(
            f"asked {', '.join(found.sources)}; waited {_ms(phases.waiting)} for answers,"
            f" pinged for {_ms(phases.pinging)}, {_ms(phases.total)} in all"
        )
    else:
        where = ", ".join(found.endpoints)
        print(f"{found.name} at {where}, {_ms(found.round_trip)} away")


def _row(one: Candidate) -> tuple[str, ...]:
    return (
        one.name,
        f"{one.address.host}:{one.address.port}",
        _estimate(one),
        f"{one.load_weight:.2f}",
        _ms(one.ping_p50),
        _ms(one.ping_least),
        _ms(one.jitter),
        f"{one.answered}/{one.pinged}",
        one.verdict,
    )


def _estimate(one: Candidate) -> str:
    if not one.plausible:
        return f"{_ms(one.estimated_delay)} (impossible)"
    return f"{one.estimated_delay * 1000:.2f} ± {one.delay_error * 1000:.2f} ms"


def _facts(one: Candidate) -> dict[str, Any]:
    import msgspec

    facts = msgspec.structs.asdict(one)
    facts["usage"] = msgspec.structs.asdict(one.usage)
    return facts | {"broker": facts.pop("name")}


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.2f} ms"
