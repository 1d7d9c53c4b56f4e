"""Pages of members: cut from a ring, at most so many members and bytes each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from hashlib import blake2b

from overlay.ids import NodeId, vid_of
from protocols.membership.interface import MembershipView
from protocols.zones.config import ZonesSettings
from protocols.zones.interface import MAX_ENDPOINTS, MemberEntry
from protocols.zones.messages import MembersPage, MembersRequest


def entries_of(view: MembershipView, names: Sequence[NodeId]) -> list[MemberEntry]:
    """Members of a view, as they travel."""
    found = []
    for name in names:
        record = view.record(name)
        if record is not None:
            found.append(MemberEntry(name, record.born, record.endpoints[:MAX_ENDPOINTS]))
    return found


def after(names: Sequence[NodeId], cursor: NodeId, count: int) -> Sequence[NodeId]:
    """The names that follow the cursor, member or not, on a ring cut at 0."""
    start = bisect_right(names, (vid_of(cursor), cursor), key=place) if cursor else 0
    return names[start : start + count]


def place(name: NodeId) -> tuple[int, NodeId]:
    """Where a name comes in a list of members."""
    return (vid_of(name), name)


def page_of(
    request: MembersRequest,
    entries: Sequence[MemberEntry],
    *,
    rest: bool,
    fresh: bool,
    settings: ZonesSettings,
) -> MembersPage:
    """As many entries as one message may hold, but at least one; `rest`: others follow them."""
    room = settings.page_bytes
    taken: list[MemberEntry] = []
    for entry in entries:
        room -= 24 + len(entry.name) + sum(len(endpoint) + 3 for endpoint in entry.endpoints)
        if taken and room < 0:
            break
        taken.append(entry)
    more = rest or len(taken) < len(entries)
    return MembersPage(request.id, request.after, tuple(taken), more, fresh)


def roster_digest(members: Sequence[tuple[NodeId, int]]) -> bytes:
    """Eight bytes that tell two rosters, clockwise lists of (name, born), apart."""
    sums = blake2b(digest_size=8)
    for name, born in members:
        sums.update(f"{name}/{born};".encode())
    return sums.digest()
