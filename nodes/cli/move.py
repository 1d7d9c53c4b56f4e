"""`overlay move`: a peer changes its zone or its address, with its publishers and subscriptions."""

from contextlib import closing
from typing import Annotated

import typer

from nodes.cli.asking import NodeName, the_one
from nodes.cli.output import AsJson, complain, print_json
from nodes.control import follow

PATIENCE = 60.0  # s until somebody of the zone took it in


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(move)


def move(
    zone: Annotated[str, typer.Option(help="The zone to go to; without it the same one.")] = "",
    bind: Annotated[list[str] | None, typer.Option(help="Where to listen from now on.")] = None,
    seed: Annotated[list[str] | None, typer.Option(help="HOST:PORT of a peer there.")] = None,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Let a peer of this machine go on in another zone, or at another address."""
    if not zone and not bind:
        complain("say where to: --zone ZONE, --bind ADDRESS, or both")
        raise typer.Exit(2)
    asked = follow(
        the_one(node), "move", timeout=PATIENCE, zone=zone, bind=bind or [], seeds=seed or []
    )
    with closing(asked) as told:
        place = next(told)
    if json:
        print_json(place)
    else:
        print(f"{place['node']} is in zone {place['zone']}, at {', '.join(place['endpoints'])}")
