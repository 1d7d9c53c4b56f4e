"""Echo: ask a peer to send a payload back. The protocol to copy when you write your own.

| tag | message     | sent when                           | the receiver                          |
|-----|-------------|-------------------------------------|---------------------------------------|
| 16  | EchoRequest | `ask` is called, or a try timed out | sends EchoReply with the same payload |
| 17  | EchoReply   | an EchoRequest arrived              | emits EchoAnswered, once per request  |

Every request ends in exactly one event: `EchoAnswered`, or `EchoTimedOut` after `1 + retries`
tries of `timeout` seconds each.

Invariants: at most `max_open` requests are open; while one is open a timer is set; every request
that was asked is answered, timed out, or open. A reply to a request that is no longer open is
counted as late and changes nothing. A reply of the wrong peer or with another payload is refused.
"""

from protocols.echo.config import EchoConfig
from protocols.echo.events import EchoAnswered, EchoTimedOut
from protocols.echo.machine import Echo
from protocols.echo.messages import EchoReply, EchoRequest

__all__ = ["Echo", "EchoAnswered", "EchoConfig", "EchoReply", "EchoRequest", "EchoTimedOut"]
