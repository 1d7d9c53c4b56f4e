"""What travels between two echo instances."""

from typing import Annotated, TypeAlias

import msgspec

from overlay.protocol import Message

RequestId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class EchoRequest(Message, frozen=True, tag=16):
    """Please send this back."""

    id: RequestId  # the asker's own; a retry carries the same one
    payload: bytes


class EchoReply(Message, frozen=True, tag=17):
    """Here it is."""

    id: RequestId
    payload: bytes
