"""What travels between nodes: frames of typed messages on MessagePack.

A *frame* is one ZeroMQ message of one or more parts:

    part 0   the head, MessagePack:  [version, sent_at, sections, attached]
             sections  [[scope, [message, …]], …]   in the order in which they were sent
             message   [tag, field, …]              see `protocols/tags.toml`
             attached  [index, …]                   messages whose `payload` is a part of its own
    part 1…  those payloads, in the order of `attached`

Payloads from `limits.payload_inline` on travel as parts, so nobody copies them into the head; the
head is at most `limits.frame_bytes` long, and so are all parts of a frame together.
A message past `limits.frame_bytes` travels as a `PieceStart` and its `Piece`s, in frames between
others (`bulk.py`, `pieces.py`).
A datagram is `[version, scope, message]` inside a signed envelope (`overlay.security`).

Fields may be added at the end of a message (older readers skip them); a tag is never reused.
"""
