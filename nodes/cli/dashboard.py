"""`overlay dashboard`: a web page about the nodes of this machine, live."""

from pathlib import Path
from typing import Annotated

import typer

from nodes.cli.asking import NodeName
from nodes.cli.output import AsJson, complain, print_json
from nodes.dashboard import check_installed

ADDRESS = "127.0.0.1:7480"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(dashboard)


def dashboard(
    bind: Annotated[
        str, typer.Option(help="HOST:PORT; beyond loopback a token is needed to look.")
    ] = ADDRESS,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the token.", show_default="made up where it is needed"),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(help="A name by which browsers know this machine; repeatable."),
    ] = None,
    allow_actions: Annotated[
        bool, typer.Option("--allow-actions", help="Let nodes leave and record, from the page.")
    ] = False,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Serve a web page about the nodes of this machine until Ctrl-C; its first line is the URL."""
    check_installed()
    import signal

    import trio

    from nodes.dashboard.server import read_token, serving

    async def serve() -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with serving(
                bind,
                node=node or "",
                token=read_token(token_file),
                hosts=host or (),
                actions=allow_actions,
            ) as running:
                if json:
                    print_json({"url": running.url, "address": running.address}, flush=True)
                else:
                    print(running.url, flush=True)
                    complain("Ctrl-C ends this")
                async for _ in signals:
                    return

    trio.run(serve)
