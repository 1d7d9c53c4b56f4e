"""Who may look: everybody on this machine at loopback, elsewhere who has the token.

Against pages of others in the user's browser: a request must name a host that is an address or
known (a name that was made to point here is refused), the cookie is for this site alone, scripts
come from here alone, and nobody may put the page into a frame. An action also needs a header that
only a page of this site can know.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from overlay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_CHARACTERS = 16  # at least, of a token that somebody chose
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses who may not look, and adds the headers that hold a browser to this site."""

    def __init__(
        self, host: str, *, token: str = "", hosts: Iterable[str] = (), actions: bool = False
    ) -> None:
        if token and len(token) < TOKEN_CHARACTERS:
            raise ConfigError(f"a token has at least {TOKEN_CHARACTERS} characters: leave it out")
        needed = actions or not is_loopback(host)
        self.token = token or (secrets.token_urlsafe(24) if needed else "")
        self.action_key = secrets.token_urlsafe(24)  # known to pages of this site
        self.refused: dict[str, int] = {"host": 0, "token": 0}
        self.cookie = "overlay_dashboard"  # the server adds its port: cookies know none
        self._hosts = {"localhost", socket.gethostname().lower(), *(one.lower() for one in hosts)}

    def wrapped(self, app: ASGIApp) -> ASGIApp:
        """The same app, behind this guard."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
            refusal = self._refusal(scope, headers)
            if refusal is not None:
                await _answer(send, *refusal)
                return

            async def send_guarded(message: Any) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message.get("headers", ()), *_encoded(HEADERS)]
                await send(message)

            await app(scope, receive, send_guarded)

        return guarded

    def _refusal(
        self, scope: Scope, headers: Mapping[str, bytes]
    ) -> tuple[int, str, dict[str, str]] | None:
        """Status, text and headers of the answer to who may not look; None: go on."""
        if not self.knows_host(headers.get("host", b"").decode("latin-1")):
            self.refused["host"] += 1
            return 421, "this dashboard is not known by that name: use its address", {}
        if not self.token:
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] == "/" and "token" in query:
            if not self._is_token(query["token"][0]):
                self.refused["token"] += 1
                return 403, "this is not the token", {}
            cookie = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            return 303, "", {"location": "/", "set-cookie": cookie}
        if not self._shows_token(headers):
            self.refused["token"] += 1
            return 401, "open the address with ?token=… that the dashboard printed", {}
        return None

    def knows_host(self, host: str) -> bool:
        """Addresses cannot be made to point elsewhere; of names only known ones will do."""
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.strip("[]").lower()
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _shows_token(self, headers: Mapping[str, bytes]) -> bool:
        kind, _, shown = headers.get("authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() == "bearer" and self._is_token(shown.strip()):
            return True
        try:
            cookies = SimpleCookie(headers.get("cookie", b"").decode("latin-1"))
        except CookieError:
            return False
        return self.cookie in cookies and self._is_token(cookies[self.cookie].value)

    def _is_token(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode(), self.token.encode())

    def may_act(self, headers: Mapping[str, str]) -> bool:
        """Whether a request to act comes from a page of this site."""
        if not hmac.compare_digest(
            headers.get("x-overlay-action", "").encode(), self.action_key.encode()
        ):
            return False
        origin = headers.get("origin", "")
        return origin.partition("://")[2] == headers.get("host", "")


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


async def _answer(send: Send, status: int, text: str, headers: Mapping[str, str]) -> None:
    plain = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store"}
    told = _encoded({**HEADERS, **plain, **headers})
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": f"{text}\n".encode() if text else b""})
