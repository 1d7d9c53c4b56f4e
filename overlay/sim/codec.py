"""Passing messages through the wire's codec on their way, for truth instead of speed."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import msgspec

from overlay.errors import RemoteProtocolError
from overlay.host import Host
from overlay.ids import NodeId
from overlay.protocol import Message
from overlay.sim.node import Sections


class WireCheck:
    """Encodes and decodes each batch with the types that the receiving node knows."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decoders: dict[tuple[type[Message], ...], msgspec.msgpack.Decoder[Any]] = {}

    def pass_sections(self, host: Host, source: NodeId, sections: Sections) -> Sections:
        """Return a frame as the node would decode it."""
        passed = list(sections)
        for index in range(1, len(passed), 2):
            passed[index] = self.pass_batch(host, source, passed[index])
        return passed

    def pass_batch(self, host: Host, source: NodeId, batch: list[Message]) -> list[Message]:
        """Return the messages as the node would decode them; undecodable ones are refused."""
        kinds = tuple(host.message_types)
        decoder = self._decoders.get(kinds)
        if decoder is None:
            decoder = msgspec.msgpack.Decoder(reduce(or_, kinds))
            self._decoders[kinds] = decoder
        passed: list[Message] = []
        for msg in batch:
            if type(msg) not in kinds:
                passed.append(msg)  # the host refuses it, as it does without the codec
                continue
            try:
                passed.append(decoder.decode(self._encoder.encode(msg)))
            except msgspec.DecodeError as error:
                host.refuse(source, RemoteProtocolError("bad-message", str(error)))
        return passed
