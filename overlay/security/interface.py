"""What the driver needs of datagrams, secure (`datagram`) or not (`plain`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from overlay.security.identity import Identity


class SignsDatagrams(Protocol):
    """Wraps the bodies that this node sends."""

    def sign(
        self,
        body: bytes,
        now: float,
        with_certificate: bool = False,
        seal_for: Identity | None = None,
    ) -> bytes:
        """Return one datagram; `now` is in Unix seconds."""


class OpensDatagrams(Protocol):
    """Unwraps what arrives; whatever is wrong with it is a RemoteProtocolError."""

    def open(self, data: bytes, now: float) -> tuple[Identity, bytes]:
        """Return who sent it, and the body."""
