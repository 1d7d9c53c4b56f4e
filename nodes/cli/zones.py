"""`overlay zones`: the zones of the overlay, who stands for them and who looks after them."""

import typer

from nodes.cli.asking import NodeName, ask_each
from nodes.cli.output import AsJson, counted, print_json, print_table
from nodes.whose_word import best_of_each_overlay


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(zones)


def zones(node: NodeName = None, json: AsJson = False) -> None:
    """Show all zones of each overlay that a node of this machine is in."""
    tables = best_of_each_overlay(ask_each(node, "zones"))
    if json:
        print_json({"overlays": tables})
        return
    for table in tables:
        rows = [
            (
                zone["name"],
                zone["size"],
                ", ".join(zone["delegates"]) or "none at the moment",
                ", ".join(zone["supervisors"]) or "-",
                zone["summary"] or "-",
            )
            for zone in table["zones"]
        ]
        title = f"{counted(len(rows), 'zone')}, as {table['node']} sees them"
        print_table(("zone", "members", "delegates", "supervisors", "roles"), rows, title=title)
