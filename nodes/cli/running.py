"""`overlay status` and `overlay stop`: ask the nodes that run on this machine."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from nodes.cli.completion import running_nodes
from nodes.cli.output import AsJson, complain, print_json, print_table
from nodes.control import ControlError, ask, name_of, sockets, sockets_of
from nodes.folders import runtime_folder

NOBODY = "no node runs on this machine"
STOP_SECONDS = 10.0  # a node promises two; a busy machine may need more to schedule it


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(status)
    app.command()(stop)


def status(
    name: Annotated[
        str | None,
        typer.Argument(help="Only this node, in full.", autocompletion=running_nodes),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show the nodes that run on this machine."""
    folder = runtime_folder()
    paths = _named(folder, name) if name is not None else list(sockets(folder))
    found = []
    for path in paths:
        try:
            found.append(ask(path, "status"))
        except ControlError as error:
            complain(error)
    if json:
        print_json({"nodes": found})
    elif not found:
        print(NOBODY)
    else:
        _print_overview(found)
        if name is not None:
            for node in found:
                _print_details(node)
    if len(found) < len(paths):
        raise typer.Exit(1)


def stop(
    name: Annotated[
        str | None, typer.Argument(help="The node to stop.", autocompletion=running_nodes)
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Stop every node of this user.")] = False,
    json: AsJson = False,
) -> None:
    """Stop nodes in good order, and wait until they are gone."""
    if (name is None) == (not all):
        raise typer.BadParameter("name one node, or say --all", param_hint="NAME")
    folder = runtime_folder()
    paths = list(sockets(folder)) if name is None else _named(folder, name)
    for path in paths:
        ask(path, "stop")
    deadline = time.monotonic() + STOP_SECONDS
    while any(path.exists() for path in paths) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = [name_of(path) for path in paths if path.exists()]
    stopped = [name_of(path) for path in paths if not path.exists()]
    if json:
        print_json({"stopped": stopped, "running": left})
    elif not paths:
        print(NOBODY)
    else:
        for one in stopped:
            print(f"{one} stopped")
    if left:
        raise ControlError(f"{', '.join(left)} did not stop within {STOP_SECONDS:g} s: kill it")


def _named(folder: Path, name: str) -> list[Path]:
    paths = sockets_of(folder, name)
    if not paths:
        running = ", ".join(name_of(path) for path in sockets(folder)) or "none"
        raise ControlError(f"no node {name!r} runs on this machine (running: {running})")
    return paths


def _print_overview(nodes: list[dict[str, Any]]) -> None:
    rows = []
    for node in nodes:
        driver = node["driver"]
        rows.append(
            (
                node["name"],
                driver["overlay"],
                node["zone"] or "-",
                "INSECURE" if node["insecure"] else "secure",
                ", ".join(driver["endpoints"]),
                f"{driver['uptime']:.0f} s",
                len(driver["links"]),
                sum(driver["refusals"].values()),
                node["pid"],
            )
        )
    columns = ("node", "overlay", "zone", "security", "address", "up", "links", "refused", "pid")
    print_table(columns, rows)


def _print_details(node: dict[str, Any]) -> None:
    driver = node["driver"]
    if driver["links"]:
        columns = ("link to", "state", "waiting bytes", "bulk waiting")
        rows = [
            (link["peer"] or link["endpoint"], link["state"], link["waiting"], link["bulk_waiting"])
            for link in driver["links"]
        ]
        print_table(columns, rows, title=node["name"])
    for title, counts in (("refused", driver["refusals"]), ("counters", driver["counters"])):
        if counts:
            print_table((title, "count"), sorted(counts.items()), title=node["name"])
    for protocol, counts in node["protocols"].items():
        print_table((protocol, "count"), counts.items(), title=node["name"])
