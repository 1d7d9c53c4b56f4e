"""`overlay new-protocol NAME`: a protocol that works, to be changed into yours."""

from pathlib import Path
from typing import Annotated

import typer

from nodes.cli.output import AsJson, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("new-protocol")(new_protocol)


def new_protocol(
    name: Annotated[str, typer.Argument(help="Small letters, like ping_pong.")],
    folder: Annotated[Path, typer.Option(help="A clone of zmq-overlay.")] = Path(),
    json: AsJson = False,
) -> None:
    """Write protocols/NAME and its test, and pin its tags."""
    from nodes.new_protocol import write_protocol

    written = write_protocol(folder.resolve(), name)
    if json:
        print_json(written)
        return
    for file in written.files:
        print(f"  {file}")
    print(
        f"Its test passes now: python -m pytest tests/unit/test_{name}.py. To run it on a node add"
        f" {written.class_name} to a recipe (nodes/recipes.py) and {written.class_name}Config to"
        " SECTIONS (nodes/settings.py)."
    )
