"""`overlay trace`: what the nodes of this machine record, changed while they run."""

from typing import Annotated, Any

import typer

from nodes.cli.asking import NodeName, running
from nodes.cli.output import AsJson, complain, print_json, print_table
from nodes.control import ControlError, ask

app = typer.Typer(help="Record traces: what happens on nodes, as Parquet files.")

Sample = Annotated[
    int, typer.Option(min=0, help="Record one of so many streams and messages; 0: as it is.")
]
Folder = Annotated[str, typer.Option("--dir", help="Where to write, if it does not write yet.")]


@app.command()
def on(node: NodeName = None, sample: Sample = 0, dir: Folder = "", json: AsJson = False) -> None:
    """Record at the level of the settings, or deliveries if that is off."""
    _tell(node, json, level="on", sample=sample, folder=dir)


@app.command()
def off(node: NodeName = None, json: AsJson = False) -> None:
    """Record no more; the file is finished."""
    _tell(node, json, level="off")


@app.command()
def level(
    level: Annotated[str, typer.Argument(help="off, delivery, messages or all.")],
    node: NodeName = None,
    sample: Sample = 0,
    dir: Folder = "",
    json: AsJson = False,
) -> None:
    """Record so much from now on."""
    _tell(node, json, level=level, sample=sample, folder=dir)


@app.command()
def status(node: NodeName = None, json: AsJson = False) -> None:
    """Show what is recorded, where to, and what was dropped."""
    _tell(node, json)


def _tell(node: str | None, json: bool, **arguments: Any) -> None:
    answers: list[dict[str, Any]] = []
    failed = False
    for path in running(node):
        try:
            answers.append(ask(path, "trace", **arguments))
        except ControlError as error:
            complain(error)
            failed = True
    if json:
        print_json({"nodes": answers})
    elif answers:
        _print(answers)
    if failed:
        raise typer.Exit(1)


def _print(answers: list[dict[str, Any]]) -> None:
    rows = [
        (
            one["node"],
            one["level"] + (f", 1 of {one['sample']}" if one["sample"] > 1 else ""),
            one["folder"] if one["level"] != "off" or "rows" in one else "-",
            one.get("run", "-"),
            f"{one.get('rows', 0):,}",
            f"{one.get('dropped', 0):,}",
            one.get("files", 0),
        )
        for one in answers
    ]
    print_table(("node", "level", "folder", "run", "rows", "dropped", "files"), rows)
    for one in answers:
        if one["failure"]:
            complain(f"{one['node']} stopped tracing: {one['failure']}")
