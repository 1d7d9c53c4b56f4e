"""The hash table through the control socket of a running node.

An operation is a conversation: the node says who it is, the client sends the operation as one line,
the node its result. Values cross as MessagePack in base64, so that bytes stay bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from nodes.dht_facts import table_facts, where_facts
from overlay.errors import LocalProtocolError
from protocols.dht.config import DhtSettings
from protocols.dht.machine import Dht

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nodes.dht import PeerTable
    from nodes.node import Node
    from nodes.service import Conversation

_decode = msgspec.msgpack.Decoder().decode
_encode = msgspec.msgpack.Encoder().encode


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One operation of a client; values are packed. Those on many keys have them in `value`."""

    do: str
    key: bytes
    value: bytes = b""
    old: bytes = b""
    ttl: float = 0.0
    stale_ok: bool = False


class TableService:
    """Registers `dht` and its questions (`dht-stats`, …) with a node's control socket."""

    def __init__(self, node: Node, table: PeerTable) -> None:
        self._node = node
        self._table = table
        node.control.register_talk("dht", self._operate)
        node.control.register("dht-watch", self._watch)
        node.control.register("dht-where", self._where)
        node.control.register("dht-stats", self._stats)
        node.control.register("dht-accept-loss", self._accept_loss)

    def _heading(self) -> dict[str, Any]:
        node = self._node
        return {"node": node.name, "overlay": node.overlay, "zone": node.zone}

    def _stats(self) -> dict[str, Any]:
        settings = self._node.config.section(DhtSettings)
        return self._heading() | table_facts(self._node.protocol(Dht), settings)

    def _accept_loss(self) -> dict[str, Any]:
        accepted = self._node.call(self._node.protocol(Dht).accept_loss)
        return self._heading() | {"shards": accepted}

    def _where(self, key: str) -> dict[str, Any]:
        return self._heading() | where_facts(self._table.where(bytes.fromhex(key)))

    async def _watch(self, key: str) -> AsyncIterator[dict[str, Any]]:
        """First who watches, then each value."""
        with self._table.watch(bytes.fromhex(key)) as values:
            yield self._heading()
            async for value in values:
                yield {"value": None if value is None else _encode(value)}

    async def _operate(self, talk: Conversation) -> None:
        await talk.say(self._heading())
        async for line in talk.lines():
            try:
                asked = msgspec.json.decode(line, type=Asked)
            except msgspec.DecodeError as error:
                raise LocalProtocolError(f"a line is no operation: {error}") from None
            await talk.say(await self._do(asked))

    async def _do(self, asked: Asked) -> dict[str, Any]:
        table, key, more = self._table, asked.key, {"ttl": asked.ttl}
        match asked.do:
            case "get":
                value = await table.get(key, stale_ok=asked.stale_ok)
                return {"value": None if value is None else _encode(value)}
            case "put":
                return {"done": await table.put(key, _decode(asked.value), **more)}
            case "put_if_absent":
                return {"done": await table.put_if_absent(key, _decode(asked.value), **more)}
            case "replace":
                old, new = _decode(asked.old), _decode(asked.value)
                return {"done": await table.replace(key, old, new, **more)}
            case "remove":
                if asked.old:
                    return {"done": await table.remove(key, _decode(asked.old))}
                return {"done": await table.remove(key)}
            case "put_many":
                values = msgspec.msgpack.decode(asked.value, type=dict[str, Any])
                await table.put_many(values, **more)
                return {"done": True}
            case "get_many":
                keys = msgspec.msgpack.decode(asked.value, type=list[str])
                found = await table.get_many(keys, stale_ok=asked.stale_ok)
                return {"value": _encode(found)}
            case _:
                raise LocalProtocolError(f"there is no operation {asked.do!r}")
