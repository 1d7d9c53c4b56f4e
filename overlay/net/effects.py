"""The effects of a protocol that runs on ZeroMQ."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from overlay.host import Host, HostEffects, Instance
from overlay.ids import NodeId
from overlay.protocol import Group, Message, UdpAddress

if TYPE_CHECKING:
    from overlay.net.driver import Driver


class NetEffects(HostEffects):
    """Hands everything to the node's driver; `send` is the hot path."""

    __slots__ = ("_by_name", "_driver", "_inline", "_scope", "_with_payload")

    def __init__(self, driver: Driver, host: Host, instance: Instance) -> None:
        super().__init__(host, instance)
        self._driver = driver
        self._scope = instance.scope
        self._by_name = driver.links.by_name
        self._with_payload = driver.sizes.with_payload
        self._inline = driver.limits.payload_inline

    def send(self, to: NodeId | Sequence[NodeId], msg: Message) -> None:
        """Queue on the link to each peer; a batch that is full leaves at once."""
        # First what most are: small, for a peer with a link, joining an open batch of this scope.
        base = self._with_payload.get(msg.__class__)
        if base is not None:
            try:
                writer = self._by_name[to].writer  # type: ignore[index]
            except (KeyError, TypeError):  # no link, or a list of peers
                pass
            else:
                size = base + len(msg.payload)  # type: ignore[attr-defined]
                left = writer.left - size
                if left >= 0 and writer.scope is self._scope and size < self._inline:
                    writer.left = left
                    writer.push(msg)
                    return
        if type(to) is str:
            self._driver.outbox.send(to, self._scope, msg)
        else:
            self._driver.outbox.send_to_many(to, self._scope, msg)

    def backlog(self, to: NodeId) -> int:
        """What waits in the queue of the link."""
        link = self._by_name.get(to)
        return 0 if link is None else link.backlog

    def cast(self, address: UdpAddress | Group, msg: Message, reader: NodeId = "") -> None:
        """Sign, seal if somebody is named, and send one datagram."""
        self._driver.cast(address, self._scope, msg, reader)

    def set_timer(self, key: Hashable, at: float) -> None:
        """Wake this protocol up."""
        self._driver.set_timer(self._instance, key, at)

    def cancel_timer(self, key: Hashable) -> None:
        """Do not."""
        self._driver.timers.cancel(self._instance, key)

    def store(self, key: bytes, value: bytes | None, token: Hashable) -> None:
        """Write to disk."""
        self._driver.store.put(self._instance, key, value, token)
