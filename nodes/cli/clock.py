"""`overlay time`: what time it is in the overlay, how sure that is, and who says so."""

from datetime import UTC, datetime
from typing import Any

import typer

from nodes.cli.asking import NodeName, ask_each
from nodes.cli.output import AsJson, print_json, print_table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("time")(show_time)


def show_time(node: NodeName = None, json: AsJson = False) -> None:
    """Show overlay time on the nodes of this machine: offset ± error, and each source of it."""
    nodes = ask_each(node, "time")
    if json:
        print_json({"nodes": nodes})
        return
    for one in nodes:
        rows = [
            (
                source["source"],
                source["state"],
                "-" if source["stratum"] is None else source["stratum"],
                offset_and_error(source),
                milliseconds(source["delay"]),
                parts_per_million(source["drift"]),
                source["samples"],
            )
            for source in one["sources"]
        ]
        columns = ("source", "state", "stratum", "offset ± error", "delay", "drift", "samples")
        print_table(columns, rows, title=heading(one))


def heading(one: dict[str, Any]) -> str:
    """What a node makes of it all."""
    if not one["synchronised"]:
        return f"{one['node']}: no time yet"
    shown = datetime.fromtimestamp(one["now"], UTC).isoformat(sep=" ", timespec="milliseconds")
    root = "it is the root" if one["root"] == one["node"] else f"from {one['root']}"
    return (
        f"{one['node']}: {shown}, {offset_and_error(one)}, drift {parts_per_million(one['drift'])},"
        f" stratum {one['stratum']}, {root}"
    )


def offset_and_error(facts: dict[str, Any]) -> str:
    """`+12.345 ± 0.200 ms`."""
    if facts["offset"] is None:
        return "-"
    return f"{1e3 * facts['offset']:+.3f} ± {1e3 * facts['error']:.3f} ms"


def milliseconds(seconds: float | None) -> str:
    """`0.123 ms`."""
    return "-" if seconds is None else f"{1e3 * seconds:.3f} ms"


def parts_per_million(rate: float | None) -> str:
    """`+12.3 ppm`."""
    return "-" if rate is None else f"{1e6 * rate:+.1f} ppm"
