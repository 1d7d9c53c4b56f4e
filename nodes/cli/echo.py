"""`overlay echo ADDRESS`: ask a peer for echoes, as ping does."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nodes.cli.output import AsJson, Profile, print_json
from nodes.settings import DEFAULT_PROFILE


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(echo)


def echo(
    address: Annotated[str, typer.Argument(help="HOST:PORT, or ipc://PATH, of a peer.")],
    count: Annotated[int, typer.Option(min=1, max=1_000_000, help="How often.")] = 4,
    pause: Annotated[float, typer.Option(min=0, max=3600, help="Seconds between two.")] = 0.2,
    size: Annotated[int, typer.Option(min=0, max=1 << 26, help="Bytes of payload.")] = 56,
    within: Annotated[float, typer.Option(min=0.1, max=600, help="Seconds to get in.")] = 5.0,
    name: Annotated[str, typer.Option(help="Whose keys to use.")] = "",
    overlay: Annotated[str, typer.Option(help="The overlay's name, when insecure.")] = "",
    keys: Annotated[Path | None, typer.Option(help="Where keys lie.")] = None,
    profile: Profile = DEFAULT_PROFILE,
    set: Annotated[list[str] | None, typer.Option(help="section.key=value; repeatable.")] = None,
    bind: Annotated[list[str] | None, typer.Option(help="Where the answer reaches us.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Without keys.")] = False,
    json: AsJson = False,
) -> None:
    """Ask a peer for echoes, and time them."""
    import trio

    from nodes.echo_client import ask_repeatedly
    from nodes.settings import node_config
    from protocols.echo import EchoAnswered, EchoTimedOut

    config = node_config(
        name,
        overlay=overlay,
        insecure=insecure,
        keys=keys,
        profile=profile,
        sets=set or (),
        bind=bind or (),
        control=False,
    )

    def tell(end: EchoAnswered | EchoTimedOut) -> None:
        if json:
            return
        tries = f" ({end.tries} tries)" if end.tries > 1 else ""
        if isinstance(end, EchoAnswered):
            print(
                f"{size} bytes from {end.peer}: {end.round_trip * 1000:.3f} ms{tries}", flush=True
            )
        else:
            print(f"no answer of {end.peer}{tries}", flush=True)

    asking = partial(
        ask_repeatedly,
        config,
        address,
        count=count,
        pause=pause,
        size=size,
        within=within,
        on_end=tell,
    )
    total = trio.run(asking)
    if json:
        print_json(total)
    else:
        times = "/".join(f"{t * 1000:.3f}" for t in (total.shortest, total.median, total.longest))
        print(
            f"{total.asked} asked, {total.answered} answered, {total.timed_out} lost;"
            f" round trip shortest/median/longest {times} ms"
        )
    if total.timed_out:
        raise typer.Exit(1)
