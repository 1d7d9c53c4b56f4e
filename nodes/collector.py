"""A peer that gathers the traces of all peers of the overlay into one folder.

async with Collector.join(folder=Path("traces"), name="col", seeds=["10.0.0.7:7400"]) as collector:
    await collector.run()
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import msgspec
import trio

from nodes.peer import Peer
from nodes.settings import node_config
from nodes.trace_files import FILES, KEPT, Kept, Piece, inode_of
from overlay.errors import ConfigError
from overlay.logs import about
from overlay.traces.schema import file_facts, file_name, pyarrow

if TYPE_CHECKING:
    from nodes.publishing import TopicPublisher
    from nodes.settings import NodeConfig
    from nodes.subscribing import Message, TopicSubscription
    from overlay.ids import NodeId

log = logging.getLogger("overlay.traces")

INCOMING = "_incoming"  # where files grow until they are whole; Spark does not look there
MOST_OPEN = 1024  # files that grow at once: one of each peer

_encode = msgspec.msgpack.Encoder().encode
_piece = msgspec.msgpack.Decoder(Piece)


class _Growing:
    """A file that is on its way."""

    def __init__(self, path: Path, piece: Piece) -> None:
        self.path = path
        self.piece = piece
        self.at = 0
        self.digest = blake2b(digest_size=16)
        self.file: BinaryIO = path.open("wb")

    def add(self, data: bytes) -> None:
        self.file.write(data)
        self.digest.update(data)
        self.at += len(data)

    def drop(self) -> None:
        self.file.close()
        self.path.unlink(missing_ok=True)


class Collector(Peer):
    """Keeps each file once, whatever crashes: the folder itself says what is there."""

    def __init__(self, config: NodeConfig, folder: Path, **options: Any) -> None:
        pyarrow()
        super().__init__(config, **options)
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self._growing: dict[NodeId, _Growing] = {}
        self._prepare()
        self.node.control.register("collector", self.facts)
        self.node.in_background(self._collect)

    @classmethod
    def join(  # type: ignore[override]
        cls, *, folder: Path, name: str | None = None, **options: Any
    ) -> Self:
        """A collector that writes to `folder`; `options` as of `node_config`."""
        return cls(node_config(name, **options), folder)

    def _prepare(self) -> None:
        """What was on its way when this node crashed comes again."""
        incoming = self.folder / INCOMING
        try:
            incoming.mkdir(parents=True, exist_ok=True)
            for path in incoming.glob("*.part"):
                path.unlink()
        except OSError as error:
            raise ConfigError(f"{self.folder}: {error.strerror}: choose another --dir") from None

    async def _collect(self) -> None:
        async with (
            self.publisher(KEPT, linger=0.0, slow="drop-oldest") as out,
            self.subscribe(FILES) as pieces,
        ):
            try:
                await self._take_all(pieces, out)
            finally:
                for growing in self._growing.values():
                    growing.drop()

    async def _take_all(self, pieces: TopicSubscription, out: TopicPublisher) -> None:
        async for message in pieces:
            try:
                answer = await trio.to_thread.run_sync(self._take, message)
            except OSError as error:  # it comes again: the disk may have room then
                self.counts["not written"] += 1
                self._drop(message.publisher)
                log.error(
                    "%s: %s",
                    self.folder,
                    error.strerror,
                    extra=about("not-collected", "traces", folder=str(self.folder)),
                )
                continue
            if answer is not None:
                await out.publish(_encode(answer))

    def _take(self, message: Message) -> Kept | None:
        """One piece; the answer if its file ends with it."""
        node = message.publisher
        try:
            piece = _piece.decode(message.data)
        except (msgspec.MsgspecError, TypeError):
            self.counts["malformed"] += 1
            return None
        target = self.folder / piece.place
        if target.exists():
            if piece.at + len(piece.data) < piece.size:
                return None  # it is here already; its sender hears so when all of it came again
            self.counts["repeated"] += 1
            self._drop(node)
            return Kept(node, piece.place, inode_of(target))
        growing = self._growing.get(node)
        if piece.at == 0:
            self._drop(node)
            growing = self._begin(node, piece)
        if growing is None or piece.at != growing.at or piece.place != growing.piece.place:
            self.counts["out of place"] += 1  # the beginning went to an earlier life of this node
            self._drop(node)
            return None
        growing.add(piece.data)
        self.counts["bytes"] += len(piece.data)
        if growing.at < piece.size:
            return None
        return self._finish(node, growing, target)

    def _begin(self, node: NodeId, piece: Piece) -> _Growing:
        while len(self._growing) >= MOST_OPEN:
            self._drop(next(iter(self._growing)))
        name = blake2b(node.encode(), digest_size=8).hexdigest()
        growing = _Growing(self.folder / INCOMING / f"{name}.part", piece)
        self._growing[node] = growing
        return growing

    def _finish(self, node: NodeId, growing: _Growing, target: Path) -> Kept:
        """Keep it for good, and only then say so."""
        del self._growing[node]
        growing.file.flush()
        os.fsync(growing.file.fileno())
        growing.file.close()
        piece = growing.piece
        wrong = self._fault(node, growing)
        if wrong:
            growing.drop()
            self.counts["refused"] += 1
            log.error(
                "a file of %s was refused: %s",
                node,
                wrong,
                extra=about("file-refused", "traces", sender=node),
            )
            return Kept(node, piece.place, refused=wrong)
        target.parent.mkdir(parents=True, exist_ok=True)
        growing.path.rename(target)
        _sync_folder(target.parent)
        self.counts["files"] += 1
        return Kept(node, piece.place, inode_of(target))

    def _fault(self, node: NodeId, growing: _Growing) -> str:
        """Why this is no file of that node's traces."""
        piece = growing.piece
        if growing.at != piece.size or growing.digest.digest() != piece.digest:
            return "it did not arrive as it left"
        arrow = pyarrow()
        import pyarrow.parquet as parquet

        try:
            facts = file_facts(parquet.read_schema(growing.path))
        except (arrow.ArrowInvalid, OSError):
            return "it is no Parquet file"
        if facts is None or facts.recorder != node:
            return "it is not of the node that sent it"
        run, _, name = piece.place.split("/")
        if run != f"run={facts.run}" or name != file_name(node, facts.life, facts.number):
            return "its name is not that of its content"
        return ""

    def _drop(self, node: NodeId) -> None:
        growing = self._growing.pop(node, None)
        if growing is not None:
            growing.drop()

    def facts(self) -> dict[str, Any]:
        """What `overlay collector` tells through the control socket."""
        return {"node": self.name, "folder": str(self.folder), "counts": dict(self.counts)}


def _sync_folder(folder: Path) -> None:
    """A rename is on disk when its folder is."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
