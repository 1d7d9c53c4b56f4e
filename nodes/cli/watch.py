"""`overlay watch`: what happens in a zone, as it happens."""

import time
from contextlib import closing

import typer

from nodes.cli.asking import NodeName, running
from nodes.cli.output import AsJson, counted, print_json
from nodes.control import ControlError, follow, name_of


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(watch)


def watch(node: NodeName = None, json: AsJson = False) -> None:
    """Print what happens in a zone, a line each, until Ctrl-C."""
    from nodes.facts import sentence

    path = running(node)[0]
    try:
        with closing(follow(path, "watch")) as events:
            for facts in events:
                if json:
                    print_json(facts, flush=True)
                elif facts["event"] == "watching":
                    size = counted(facts["members"], "member")
                    told = f"zone {facts['zone']}, {size}, as {facts['node']} sees it"
                    print(f"{told}; Ctrl-C ends this", flush=True)
                else:
                    print(f"{_clock(facts['at'])} {sentence(facts)}", flush=True)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
    raise ControlError(f"{name_of(path)} stopped")


def _clock(at: float) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{int(at % 1 * 1000):03}"
