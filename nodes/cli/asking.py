"""Which of the nodes on this machine a command asks."""

from pathlib import Path
from typing import Annotated, Any

import typer

from nodes.cli.completion import running_nodes
from nodes.control import ControlError, ask, name_of, sockets, sockets_of
from nodes.folders import runtime_folder

NodeName = Annotated[
    str | None,
    typer.Option("--node", help="Ask this node of this machine.", autocompletion=running_nodes),
]


def running(name: str | None) -> list[Path]:
    """The nodes of that name, or all; ControlError when there is none."""
    folder = runtime_folder()
    found = list(sockets(folder)) if name is None else sockets_of(folder, name)
    if not found:
        if name is None:
            raise ControlError("no node runs on this machine: start one with `overlay peer`")
        others = ", ".join(name_of(path) for path in sockets(folder)) or "none"
        raise ControlError(f"no node {name!r} runs on this machine (running: {others})")
    return found


def the_one(name: str | None) -> Path:
    """The node that is meant; ControlError when that is not clear."""
    found = running(name)
    if len(found) > 1 and name is None:
        names = ", ".join(map(name_of, found))
        raise ControlError(f"several nodes run on this machine: say --node ({names})")
    return found[0]


def ask_each(name: str | None, do: str) -> list[dict[str, Any]]:
    """What each of the nodes tells; one that just stops is left out if others answer."""
    answers, failures = [], []
    for path in running(name):
        try:
            answers.append(ask(path, do))
        except ControlError as error:
            failures.append(error)
    if not answers:
        raise failures[0]
    return answers
