"""All boxes of a broker, and the subscriptions with which it stands in for their owners."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.predicates import Constraint
from protocols.content.interface import ContentRouter, EntryId, entry_id
from protocols.mobility.box import Box, Marks, Wanted
from protocols.mobility.keeping_config import KeepingSettings
from protocols.mobility.keeping_log import Log
from protocols.mobility.keeping_messages import Want
from protocols.mobility.keeping_shelf import Shelf


class Boxes:
    """By subscriber and visit; by stand-in."""

    def __init__(
        self, me: NodeId, content: ContentRouter, config: KeepingSettings, log: Log, shelf: Shelf
    ) -> None:
        self._me = me
        self._content = content
        self._config = config
        self._log = log
        self._shelf = shelf
        self._boxes: dict[NodeId, dict[int, Box]] = {}
        self._stand_ins: dict[EntryId, tuple[Box, str]] = {}
        self._serial = 0
        self._latest: OrderedDict[NodeId, int] = OrderedDict()

    def __iter__(self) -> Iterator[Box]:
        return (box for boxes in self._boxes.values() for box in boxes.values())

    def __len__(self) -> int:
        return sum(map(len, self._boxes.values()))

    def has_room(self, client: NodeId) -> bool:
        """Whether one more box for that subscriber is within the bound."""
        return client in self._boxes or len(self._boxes) < self._config.max_subscribers

    def of(self, client: NodeId) -> list[Box]:
        """Those of one subscriber."""
        return list(self._boxes.get(client, {}).values())

    def get(self, client: NodeId, visit: int) -> Box | None:
        """That of one visit."""
        return self._boxes.get(client, {}).get(visit)

    def newest(self, client: NodeId) -> int:
        """The latest visit of a subscriber, to whichever broker, that this broker heard of."""
        return self._latest.get(client, 0)

    def heard_of(self, client: NodeId, visit: int) -> None:
        """A subscriber is, or was, on that visit: an earlier one that is told later is over."""
        self._latest[client] = max(visit, self.newest(client))
        self._latest.move_to_end(client)
        if len(self._latest) > max(self._config.max_subscribers, 1):
            self._latest.popitem(last=False)

    def start(self, serial: int) -> None:
        """Go on after the ids of an earlier life."""
        self._serial = serial

    def open(self, client: NodeId, visit: int, now: float) -> Box:
        """A new one."""
        self._serial += 1
        box = Box(self._serial, client, visit, Marks(self._config.max_marks))
        box.heard_at = box.moved_at = now
        self._boxes.setdefault(client, {})[visit] = box
        self.heard_of(client, visit)
        return box

    def close(self, box: Box, now: float) -> None:
        """All of it goes."""
        for name in list(box.wants):
            self._unwant(box, name, now)
        self._log.forget(box)
        self._shelf.drop_box(box)
        boxes = self._boxes[box.client]
        del boxes[box.visit]
        if not boxes:
            del self._boxes[box.client]

    # -- standing in ----------------------------------------------------------------------------

    def want(self, box: Box, wants: Mapping[str, Want], now: float) -> None:
        """Stand in for exactly these; LocalProtocolError if content-based routing has no room."""
        read = {name: Constraint.from_wire(want.constraint) for name, want in wants.items()}
        for name in [name for name in box.wants if name not in wants]:
            self._unwant(box, name, now)
        for name, want in wants.items():
            before = box.wants.get(name)
            if before is not None and before[:2] == (read[name], want.model):
                continue
            self._serial += before is None
            stand_in = f"kept-{self._serial}" if before is None else before.stand_in
            entry = self._content.subscribe(stand_in, read[name], now, model=want.model)
            box.wants[name] = Wanted(read[name], want.model, stand_in)
            self._stand_ins[entry] = (box, name)
        self._shelf.put_box(box)

    def want_nothing(self, box: Box, now: float) -> None:
        """Somebody else stands in."""
        for name in list(box.wants):
            self._unwant(box, name, now)
        self._shelf.put_box(box)

    def _unwant(self, box: Box, name: str, now: float) -> None:
        stand_in = box.wants.pop(name).stand_in
        del self._stand_ins[entry_id(self._me, stand_in)]
        self._content.unsubscribe(stand_in, now)

    def owner(self, stand_in: EntryId) -> tuple[Box, str] | None:
        """For whom that subscription of this broker stands, and what it is called there."""
        return self._stand_ins.get(stand_in)

    def check(self) -> None:
        """Each stand-in has its box, and the numbers of all are in order."""
        self._log.check(self)
        for box in self:
            if not box.taken <= box.oldest <= box.next or (box.by and box.by <= box.visit):
                raise InvariantViolation(f"{self._me}: the numbers of {box.client}'s box are wrong")
            for name, want in box.wants.items():
                if self._stand_ins.get(entry_id(self._me, want.stand_in)) != (box, name):
                    raise InvariantViolation(f"{self._me} lost the stand-in {want.stand_in}")
        if len(self._stand_ins) != sum(len(box.wants) for box in self):
            raise InvariantViolation(f"{self._me} stands in for nobody")
