"""What `overlay pub` and `overlay sub` have in common: through which peer they speak."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodes.cli.asking import the_one
from nodes.cli.output import complain
from nodes.control import sockets
from nodes.folders import runtime_folder
from overlay.errors import ConfigError, LocalProtocolError

if TYPE_CHECKING:
    from nodes.blocking import Peer

Words = list[str] | None

JOINED_WITHIN = 3.0  # s, then people are told that it takes long

Seeds = Annotated[
    Words, typer.Option("--seed", help="Join as a peer of its own, which meets HOST:PORT.")
]
Name = Annotated[str, typer.Option(help="With --seed: the peer's name; its keys must be issued.")]
Zone = Annotated[str, typer.Option(help="With --seed: the zone to join.")]
Overlay = Annotated[str, typer.Option(help="With --seed: the overlay's name, when insecure.")]
Keys = Annotated[Path | None, typer.Option(help="With --seed: where keys lie.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="With --seed: without keys.")]
Bind = Annotated[Words, typer.Option(help="With --seed: HOST:PORT to listen at.")]
Sets = Annotated[Words, typer.Option("--set", help="With --seed: section.key=value; repeatable.")]


def checked(check: Callable[[str], str], text: str) -> str:
    """A topic or a pattern; one that cannot be is wrong usage."""
    try:
        return check(text)
    except LocalProtocolError as error:
        raise typer.BadParameter(str(error)) from None


def through_node(node: str | None, seeds: Words, own: dict[str, Any]) -> Path | None:
    """The control socket of the node that is meant; None when a peer of its own is.

    Without --seed it is a node of this machine: the only one, or the one that --node names.
    """
    if seeds:
        if node is not None:
            raise typer.BadParameter("say --node or --seed, not both", param_hint="--node")
        return None
    told = [f"--{key}" for key, value in own.items() if value]
    if told:
        raise typer.BadParameter(f"{told[0]} needs --seed", param_hint=told[0])
    if node is None and not list(sockets(runtime_folder())):
        raise ConfigError(
            "no node runs on this machine: say --seed HOST:PORT of one elsewhere, or start one"
            " with `overlay peer`"
        )
    return the_one(node)


@contextmanager
def own_peer(seeds: Words, own: dict[str, Any]) -> Iterator[Peer]:
    """A peer that has joined its zone, and leaves it at the end."""
    from nodes.blocking import Peer

    options = {key: value for key, value in own.items() if value}
    with Peer(seeds=seeds or (), control=False, **options) as peer:
        try:
            peer.joined(timeout=JOINED_WITHIN)
        except TimeoutError:
            complain(f"{peer.name} found no way into its zone over {', '.join(seeds or ())} so far")
            peer.joined()
        yield peer
