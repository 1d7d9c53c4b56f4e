"""`overlay topology`: which members of a zone keep a link, and why."""

from typing import Annotated, Any

import typer

from nodes.cli.asking import NodeName, ask_each
from nodes.cli.output import AsJson, counted, print_json, print_table

COLOURS = {"ring": "black", "structured": "blue", "random": "gray50", "interest": "forestgreen"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(topology)


def topology(
    node: NodeName = None,
    dot: Annotated[
        bool, typer.Option("--dot", help="Print a graph for graphviz: `| dot -Tsvg`.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show the links of the nodes of this machine by kind."""
    nodes = ask_each(node, "topology")
    if json:
        print_json({"nodes": nodes})
    elif dot:
        print(graph(nodes), end="")
    else:
        for zone, there in _by_zone(nodes).items():
            rows = [
                (
                    one["node"],
                    len(one["links"]),
                    *(", ".join(_peers(one, kind)) or "-" for kind in COLOURS),
                )
                for one in there
            ]
            size = max(len(one["members"]) for one in there)
            title = f"zone {zone}, {counted(size, 'member')}, links of {len(rows)} on this machine"
            print_table(("member", "links", *COLOURS), rows, title=title)


def graph(nodes: list[dict[str, Any]]) -> str:
    """One undirected graph in DOT; a cluster for each zone, an edge for each link."""
    lines = ["graph overlay {", "  layout=circo; overlap=false; node [shape=box, style=rounded];"]
    for number, (zone, there) in enumerate(_by_zone(nodes).items()):
        # A prefix tells members of one name in two zones apart.
        def place(member: str, prefix: int = number) -> str:
            return _quoted(f"{prefix}/{member}")

        lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(f'zone {zone}')};"]
        for member in dict.fromkeys(member for one in there for member in one["members"]):
            lines.append(f"    {place(member)} [label={_quoted(member)}];")
        for (one, other), kinds in _edges(there).items():
            style = f"color={COLOURS[kinds[0]]}" if kinds else "style=dotted"
            tip = _quoted(" ".join(kinds) or "wanted by its other end")
            lines.append(f"    {place(one)} -- {place(other)} [{style}, tooltip={tip}];")
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


def _edges(nodes: list[dict[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """Each pair once, whichever ends told of it; the strongest reason first."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in nodes:
        for link in one["links"]:
            here, there = sorted((one["node"], link["peer"]))
            found.setdefault((here, there), set()).update(link["kinds"])
    return {pair: [kind for kind in COLOURS if kind in found[pair]] for pair in sorted(found)}


def _by_zone(nodes: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    overlays = {one["overlay"] for one in nodes}
    found: dict[str, list[dict[str, Any]]] = {}
    for one in nodes:
        zone = one["zone"] if len(overlays) == 1 else f"{one['zone']} of {one['overlay']}"
        found.setdefault(zone, []).append(one)
    return found


def _peers(one: dict[str, Any], kind: str) -> list[str]:
    return [link["peer"] for link in one["links"] if kind in link["kinds"]]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
