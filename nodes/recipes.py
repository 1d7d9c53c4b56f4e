"""Recipes: which protocols one kind of node runs, in the order in which they start."""

from nodes.settings import NodeConfig
from overlay.host import Host, Recipe
from protocols.echo import Echo, EchoConfig


def peer(config: NodeConfig) -> Recipe:
    """A plain peer: what `overlay peer` runs."""

    def add_protocols(host: Host) -> None:
        host.add(Echo, config.section(EchoConfig))

    return add_protocols
