"""`overlay resource` and `overlay find`: what peers offer, through a node of this machine."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nodes.cli.asking import NodeName, ask_each, running, the_one
from nodes.cli.output import AsJson, complain, counted, print_json, print_table
from nodes.control import ControlError, ask, follow
from nodes.resources import MODELS, as_query, as_values
from overlay.errors import LocalProtocolError

app = typer.Typer(help="Resources that a node of this machine offers.", no_args_is_help=True)

SLACK = 5.0  # s on top of a find's own timeout until the node counts as silent
FIND_TIMEOUT = 5.0  # resources.timeout, unless it is set otherwise: then say --timeout, too

Name = Annotated[str, typer.Argument(help="What the node calls the resource.")]


@app.command()
def register(
    name: Name,
    description: Annotated[
        str, typer.Argument(help="What it is: \"system = 'Linux', memory <= 64\".")
    ] = "",
    values: Annotated[
        str, typer.Option(help='What it has now, if that changes: "memory = 48".')
    ] = "",
    dynamic: Annotated[
        bool, typer.Option("--dynamic", help="It will be updated; implied by --values.")
    ] = False,
    lease: Annotated[
        float, typer.Option(min=0, max=1e9, help="Seconds without an update; 0: no end.")
    ] = 0.0,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Let everybody find a resource, as long as the node runs."""
    if not description and not values:
        raise typer.BadParameter("say what it is, or give --values", param_hint="DESCRIPTION")
    _checked(as_query, description, "DESCRIPTION")
    _checked(as_values, values, "--values")
    model = "dynamic" if dynamic else ""
    told = ask(
        the_one(node),
        "resource-register",
        name=name,
        description=description,
        values=values,
        model=model,
        lease=lease,
    )
    _ended(told, "registered", json)


@app.command()
def update(
    name: Name,
    values: Annotated[str, typer.Argument(help='What changed: "memory = 40".')],
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Change values of a dynamic resource; the others stay."""
    _checked(as_values, values, "VALUES")
    told = ask(the_one(node), "resource-update", name=name, values=values)
    _ended(told, "updated", json)


@app.command()
def unregister(name: Name, node: NodeName = None, json: AsJson = False) -> None:
    """Let nobody find it any more."""
    _ended(ask(the_one(node), "resource-unregister", name=name), "unregistered", json)


@app.command("list")
def list_(node: NodeName = None, json: AsJson = False) -> None:
    """Show what the nodes of this machine offer."""
    told = ask_each(node, "resources")
    if json:
        print_json({"nodes": told})
        return
    rows = [
        (one["node"], own["name"], own["model"], own["description"], _values(own["values"]))
        for one in told
        for own in one["resources"]
    ]
    print_table(("node", "resource", "model", "description", "values"), rows)


def find(
    query: Annotated[str, typer.Argument(help="What it must be: \"system = 'Linux', cpus >= 4\".")],
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on: print what comes, changes and goes.")
    ] = False,
    limit: Annotated[int, typer.Option(min=0, help="Enough; 0: all.")] = 0,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Measure round trips; the shortest first.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="No values that others were told a while ago.")
    ] = False,
    model: Annotated[str, typer.Option(help="any, static or dynamic resources.")] = "any",
    timeout: Annotated[
        float | None,
        typer.Option(min=0.01, max=3600, help="Seconds to wait for all.", show_default="5"),
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="With --watch: end after so many lines.")
    ] = None,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Find resources of all peers; exit 1 when nothing was found or some did not answer."""
    _checked(as_query, query, "QUERY")
    if model not in MODELS:
        raise typer.BadParameter(f"use one of {', '.join(MODELS)}", param_hint="--model")
    asked = any_of(node)
    if watch:
        _watch(asked, query, model, count, json)
        return
    within = (timeout or FIND_TIMEOUT) + SLACK
    more: dict[str, Any] = {
        "limit": limit,
        "model": model,
        "nearest": nearest,
        "fresh": fresh,
        "timeout": timeout,
    }
    *found, end = follow(asked, "find", timeout=within, query=query, **more)
    if json:
        print_json({"resources": found, **end})
    else:
        _print_found(found)
        if not end["complete"]:
            complain(f"not all have answered: {end['reason']}")
    if not found or not end["complete"]:
        raise typer.Exit(1)


def _watch(asked: Any, query: str, model: str, count: int | None, json: bool) -> None:
    lines = follow(asked, "find-watch", query=query, model=model)
    next(lines)  # who watches
    left = count
    try:
        for one in lines:
            if json:
                print_json(one, flush=True)
            else:
                what = "gone" if one["gone"] else _values(one["values"]) or one["description"]
                print(f"{one['id']}  {what}", flush=True)
            left = None if left is None else left - 1
            if left == 0:
                break
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def any_of(name: str | None) -> Any:
    """The node to ask: what one finds, all do, so any of this machine's will do."""
    for path in running(name):
        try:
            ask(path, "resources")
        except ControlError:
            continue  # it is no peer, or it just stops
        return path
    raise ControlError("no node of this machine knows resources: start one with `overlay peer`")


def _print_found(found: list[dict[str, Any]]) -> None:
    rows = [
        (
            one["owner"],
            one["name"],
            one["model"],
            _values(one["values"]) or one["description"],
            one["hops"],
            "-" if one["distance"] is None else f"{one['distance'] * 1000:.1f}",
            f"{one['age']:.1f}",
        )
        for one in found
    ]
    if rows:
        print_table(("owner", "resource", "model", "values", "hops", "ms", "age s"), rows)
    print(counted(len(rows), "resource"))


def _values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _ended(told: dict[str, Any], done: str, json: bool) -> None:
    if json:
        print_json({"id": told["id"], "done": done, "node": told["node"]})
    else:
        print(f"{told['id']} {done}")


def _checked(read: Any, text: str, where: str) -> None:
    """Tell of a typing error before anybody is asked."""
    try:
        if text:
            read(text)
    except LocalProtocolError as error:
        raise typer.BadParameter(str(error), param_hint=where) from None
