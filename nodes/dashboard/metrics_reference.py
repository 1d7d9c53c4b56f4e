"""Every metric as a page: `python -m nodes.dashboard.metrics_reference > docs/METRICS.md`."""

from nodes.dashboard.metric_names import PLAIN, Name, protocol_counters

HEAD = """# Metrics

Made by `python -m nodes.dashboard.metrics_reference > docs/METRICS.md` from the code. `/metrics` of
a dashboard tells them of every node that it watches, that of a peer with `--dashboard` of this
peer. All metrics of a node have the labels `overlay`, `node` and `zone`.
"""


def page() -> str:
    """The whole reference."""
    parts = [HEAD, _table("Nodes", PLAIN)]
    by_protocol: dict[str, list[Name]] = {}
    for (protocol, _), name in protocol_counters().items():
        by_protocol.setdefault(protocol, []).append(name)
    parts += [_table(f"Protocol {name}", by_protocol[name]) for name in sorted(by_protocol)]
    return "\n".join(parts)


def _table(title: str, names: tuple[Name, ...] | list[Name]) -> str:
    rows = [
        f"| `{one.exposed}` | {one.kind} | {_more(one)} | {one.help.replace('|', ' ')} |"
        for one in names
    ]
    head = [f"## {title}", "", "| metric | type | more labels | what it is |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def _more(one: Name) -> str:
    more = [label for label in one.labels if label not in ("overlay", "node", "zone")]
    return ", ".join(f"`{label}`" for label in more) or "-"


if __name__ == "__main__":
    print(page(), end="")
