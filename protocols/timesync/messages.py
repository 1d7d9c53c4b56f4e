"""What travels: a question, and an answer whose timestamps are claims."""

from typing import Annotated, TypeAlias

import msgspec

from overlay.ids import WireName
from overlay.protocol import Message

FARTHEST = 1e11  # s: three thousand years; a float beyond has no microseconds left
MAX_RATE = 5e-4  # of a correction: crystals are off by a tenth of that
UNSYNCHRONISED = 16  # a stratum, as NTP's
PADDING = bytes(56)  # so that no reply is more than twice as long, whoever is said to have asked

RequestId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Clock: TypeAlias = Annotated[float, msgspec.Meta(ge=-FARTHEST, le=FARTHEST)]


class TimeRequest(Message, frozen=True, tag=128):
    """What does your clock show?"""

    id: RequestId  # random: who did not see it cannot answer
    padding: Annotated[bytes, msgspec.Meta(min_length=56, max_length=64)]  # see PADDING


class TimeReply(Message, frozen=True, tag=129):
    """What it showed, and what overlay time this node makes of it."""

    id: RequestId
    received: Clock  # by the clock of the one who answers
    sent: Clock
    offset: Clock  # what it adds to its clock at `sent`
    rate: Annotated[float, msgspec.Meta(ge=-MAX_RATE, le=MAX_RATE)]  # how that changes
    error: Annotated[float, msgspec.Meta(ge=0, le=FARTHEST)]  # s that its overlay time may be off
    stratum: Annotated[int, msgspec.Meta(ge=1, le=UNSYNCHRONISED)]
    root: WireName  # whose time it is in the end
    led: bool = False  # it is a delegate, and has that time from zones that lead its own
