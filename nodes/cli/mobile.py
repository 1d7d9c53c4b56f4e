"""`overlay mobile`: where clients are attached, what brokers keep for them, and moving."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nodes.cli.asking import NodeName, ask_each, the_one
from nodes.cli.output import AsJson, counted, print_json, print_table
from nodes.control import follow

app = typer.Typer(
    help="Where mobile clients are, and what brokers keep for them.", no_args_is_help=True
)

MOVED_WITHIN = 20.0  # s until a broker took this client, or did not


@app.command()
def show(node: NodeName = None, json: AsJson = False) -> None:
    """Tell of each node where it is attached; of a broker, for whom it keeps what."""
    told = ask_each(node, "mobile")
    if json:
        print_json({"nodes": told})
        return
    for one in told:
        _print(one)


@app.command()
def move(
    broker: Annotated[
        str, typer.Argument(help="Its name, or HOST:PORT; none: the nearest one.")
    ] = "",
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Move a running client to another broker."""
    told = next(follow(the_one(node), "mobile-move", timeout=MOVED_WITHIN, broker=broker))
    if json:
        print_json(told)
    else:
        _print(told)


def _print(told: dict[str, Any]) -> None:
    if told["role"] == "client":
        where = f"at {told['broker']}" if told["broker"] else "nowhere"
        kept = f", kept for at {told['kept_at']}" if told["kept_at"] else ""
        wants = counted(len(told["subscriptions"]), "mobile subscription")
        print(f"{told['node']} is {where}{kept}: {wants}{', moving' if told['moving'] else ''}")
        return
    boxes = told["boxes"]
    print(f"{told['node']} keeps for {counted(len(boxes), 'subscriber')}")
    if boxes:
        columns = ("subscriber", "state", "subscriptions", "kept", "bytes", "silent_for")
        print_table(columns, [[str(box[name]) for name in columns] for box in boxes])
