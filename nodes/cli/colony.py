"""`overlay colony`: join a tree of brokers, offer services, and have servants found."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nodes.cli.asking import NodeName, ask_each, the_one
from nodes.cli.output import AsJson, complain, counted, print_json, print_table
from nodes.control import follow

app = typer.Typer(
    help="Offer services to a colony of peers, and have servants found.", no_args_is_help=True
)

JOINED_WITHIN = 20.0  # s until a leader took this unit, or did not

Services = Annotated[
    list[str],
    typer.Argument(
        metavar="SERVICE…", help="Constraints: 'kind = \"cpu\", cores > 4'; A & B: of one computer."
    ),
]


@app.command()
def join(
    leader: Annotated[
        str, typer.Argument(help="Its name, or HOST:PORT; none: follow nobody any more.")
    ] = "",
    lead: Annotated[
        bool, typer.Option("--lead", help="Be a broker: take individuals oneself.")
    ] = False,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Log in to a leader, lead, or leave; for nodes with colony.placement=tree."""
    told = next(
        follow(the_one(node), "colony-join", timeout=JOINED_WITHIN, leader=leader, lead=lead)
    )
    if json:
        print_json(told)
    elif told["leader"]:
        print(f"{told['node']} follows {' → '.join(told['path'])}")
    else:
        print(f"{told['node']} {'is a root' if told['leads'] else 'follows nobody'}")


@app.command()
def offer(
    services: Services,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Offer these no more.")] = False,
    refuse: Annotated[
        bool, typer.Option("--refuse", help="Offer them, but serve nobody for now.")
    ] = False,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Offer services of a running node, as long as it runs."""
    words: dict[str, Any] = {"services": services, "withdraw": withdraw, "refuse": refuse}
    told = next(follow(the_one(node), "colony-offer", timeout=JOINED_WITHIN, **words))
    if json:
        print_json(told)
    else:
        print(f"{told['node']} offers {counted(len(told['offers']), 'service')}")


@app.command()
def ask(
    services: Services,
    mode: Annotated[
        str,
        typer.Option(
            help="broadcast, exhaustive, greedy-random, greedy-ordered, greedy-latency,"
            " greedy-acceptance; none: as each broker is set."
        ),
    ] = "",
    fanout: Annotated[int, typer.Option(min=0, max=1000, help="Of greedy modes.")] = 0,
    within: Annotated[float, typer.Option(min=0, max=86_400, help="Seconds; 0: as set.")] = 0.0,
    instances: Annotated[int, typer.Option(min=1, max=1000, help="Computers for each.")] = 1,
    all: Annotated[bool, typer.Option("--all", help="Tell everybody who accepts.")] = False,
    reliable: Annotated[
        bool, typer.Option("--reliable", help="Survive losses, and brokers that restart.")
    ] = False,
    without: Annotated[list[str] | None, typer.Option(help="Not these servants.")] = None,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Print who serves each service, as soon as it is found; exit 1 when one has nobody."""
    terms: dict[str, Any] = {"mode": mode, "fanout": fanout, "within": within}
    terms |= {"instances": instances, "replies": 0 if all else None, "reliable": reliable}
    lines = follow(
        the_one(node),
        "colony-ask",
        timeout=JOINED_WITHIN,
        services=services,
        without=without or [],
        **terms,
    )
    next(lines)  # who asks
    rejected: dict[str, str] = {}
    for line in lines:
        if "servant" in line:
            servant = line["servant"]
            if json:
                print_json(servant | {"service": services[servant["index"]]}, flush=True)
            else:
                places = ", ".join(servant["endpoints"])
                print(f"{services[servant['index']]}: {servant['name']} at {places}", flush=True)
        else:
            rejected = line["rejected"]
    for index, reason in rejected.items():
        complain(f"{services[int(index)]}: {reason}")
    if rejected:
        raise typer.Exit(1)


@app.command()
def tree(node: NodeName = None, json: AsJson = False) -> None:
    """Show where the nodes of this machine stand, and who is in the colonies that they lead."""
    told = ask_each(node, "colony")
    if json:
        print_json({"nodes": told})
        return
    rows = [
        (
            one["node"],
            "broker" if one["leads"] else "computer",
            " → ".join(one["path"]) or ("root" if one["leads"] else "nobody"),
            len(one["offers"]),
            len(one["services"]),
            ", ".join(individual["name"] for individual in one["individuals"]) or "-",
            one["counts"]["requests"],
        )
        for one in told
    ]
    columns = ("node", "unit", "follows", "offers", "colony offers", "individuals", "requests")
    print_table(columns, rows)
