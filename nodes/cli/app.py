"""All commands in one typer app; one module for each group."""

from importlib.metadata import PackageNotFoundError
from typing import Annotated, Any

import typer

import overlay
from nodes.cli import (
    analyze,
    brokers,
    clock,
    collector,
    colony,
    config,
    dashboard,
    demo,
    dht,
    discover,
    doctor,
    echo,
    keys,
    lab,
    members,
    mobile,
    move,
    new_protocol,
    peer,
    pub,
    resources,
    running,
    sim,
    sub,
    topics,
    topology,
    trace,
    watch,
    zones,
)
from nodes.cli.output import AsJson, print_json

app = typer.Typer(
    name="overlay",
    help="A peer-to-peer overlay on ZeroMQ.",
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    json: AsJson = False,
) -> None:
    """A peer-to-peer overlay on ZeroMQ."""
    if version:
        if json:
            print_json({"version": _version()})
        else:
            print(f"overlay {_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)
    if json:
        context.default_map = _json_by_default(context.command)


def _json_by_default(command: Any) -> dict[str, Any]:
    """What makes `overlay --json status` mean `overlay status --json`."""
    subcommands = getattr(command, "commands", None)
    if subcommands is None:
        return {"json": True}
    return {name: _json_by_default(one) for name, one in subcommands.items()}


def _version() -> str:
    try:
        return overlay.__version__
    except PackageNotFoundError:
        return "of a clone that is not installed"


for module in (
    *(peer, running, move, members, zones, topology, watch, clock, dashboard),
    *(pub, sub, topics, collector, brokers, discover, echo, new_protocol, demo, analyze, doctor),
):
    module.register(app)
app.add_typer(keys.app, name="keys")
app.add_typer(lab.app, name="lab")
app.add_typer(config.app, name="config")
app.add_typer(dht.app, name="dht")
app.add_typer(resources.app, name="resource")
app.command()(resources.find)
app.add_typer(colony.app, name="colony")
app.add_typer(mobile.app, name="mobile")
app.add_typer(trace.app, name="trace")
sim.register(app)
