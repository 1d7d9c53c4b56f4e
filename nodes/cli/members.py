"""`overlay members`, `overlay set` and `overlay unset`: who is in a zone, and what they tell."""

from contextlib import closing
from typing import Annotated, Any

import typer

from nodes.cli.asking import NodeName, ask_each, running, the_one
from nodes.cli.output import AsJson, counted, print_json, print_table
from nodes.control import ask, follow
from nodes.whose_word import first_of_each_zone

PATIENCE = 30.0  # s: delegates may just be replaced


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(members)
    app.command("set")(set_)
    app.command()(unset)


def members(
    zone: Annotated[str | None, typer.Option(help="Ask around who is in this zone.")] = None,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Show the members of each zone that a node of this machine is in, or of any zone."""
    if zone is not None:
        _members_of(zone, node, json)
        return
    views = first_of_each_zone(ask_each(node, "members"))
    if json:
        print_json({"views": views})
        return
    for view in views:
        rows = [
            (
                member["name"],
                member["state"],
                ", ".join(member["endpoints"]) or "-",
                member["vid"][:8],
                shown(for_people(member["attributes"])) or "-",
            )
            for member in view["members"]
        ]
        title = f"zone {view['zone']}, {counted(len(rows), 'member')}, as {view['node']} sees it"
        print_table(("member", "state", "address", "place", "attributes"), rows, title=title)


def _members_of(zone: str, node: str | None, json: bool) -> None:
    with closing(follow(running(node)[0], "zone-members", timeout=PATIENCE, zone=zone)) as told:
        answer = next(told)
    if json:
        print_json(answer)
        return
    rows = [(one["name"], ", ".join(one["endpoints"]) or "-") for one in answer["members"]]
    when = "now" if answer["fresh"] else "when its delegates were heard last"
    title = f"zone {zone}, {counted(len(rows), 'member')} {when}, as {answer['node']} was told"
    print_table(("member", "address"), rows, title=title)


def set_(
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="What to tell.")],
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Set attributes of a node; every member of its zone sees them."""
    values = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{text!r}: write KEY=VALUE", param_hint="KEY=VALUE")
        values[key] = value_of(value)
    _tell(ask(the_one(node), "set", values=values), json)


def unset(
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="What to remove.")],
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Remove attributes of a node."""
    _tell(ask(the_one(node), "set", remove=keys), json)


def _tell(attributes: dict[str, Any], json: bool) -> None:
    if json:
        print_json({"attributes": attributes})
    else:
        print(shown(attributes) or "no attributes are left")


def value_of(text: str) -> str | int | float | bool:
    """A number or a switch where the text is one, else the text; quotes keep it text."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def for_people(attributes: dict[str, Any]) -> dict[str, Any]:
    """Without what zones tell each other; `--json` has it."""
    return {key: value for key, value in attributes.items() if key != "management"}


def shown(attributes: dict[str, Any]) -> str:
    """`gpu=4 rack="7"`: as `overlay set` would take it."""
    return " ".join(f"{key}={_quoted(value)}" for key, value in attributes.items())


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and (value_of(value) != value or " " in value):
        return f'"{value}"'
    return str(value)
