"""The routes: the page and its assets, a stream of each view, metrics, and actions."""

from __future__ import annotations

from contextlib import aclosing
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from nodes.control import ControlError
from nodes.dashboard.actions import BODY_BYTES, act, read_action
from nodes.dashboard.channels import Channels, TooManyPages
from nodes.dashboard.metrics import CONTENT_TYPE, scrape
from nodes.dashboard.patches import without_nulls
from nodes.dashboard.views import view_of
from overlay.errors import OverlayError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from nodes.dashboard.hub import Hub
    from nodes.dashboard.security import Guard

TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
NO_STORE = {"cache-control": "no-store"}


def assets() -> dict[str, tuple[bytes, str]]:
    """The files that the package brings along, by name, with their types."""
    folder = resources.files("nodes.dashboard") / "assets"
    found = {}
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        kind = one.name.rpartition(".")[2]
        if kind in TYPES:
            found[one.name] = (one.read_bytes(), TYPES[kind])
    return found


class Dashboard:
    """Answers requests about what a hub knows."""

    def __init__(self, hub: Hub, guard: Guard, *, actions: bool = False, own: str = "") -> None:
        self.hub = hub
        self.guard = guard
        self.channels = Channels(hub)
        self._actions = actions
        self._own = own  # the node that this is a role of: metrics are of it alone
        self._assets = assets()

    def app(self) -> ASGIApp:
        """What a server runs."""
        return self.guard.wrapped(Starlette(routes=list(self._routes())))

    def _routes(self) -> Iterator[Route]:
        yield Route("/", self._page)
        yield Route("/assets/{name}", self._asset)
        yield Route("/stream/{view:path}", self._stream)
        yield Route("/view/{view:path}", self._view)
        yield Route("/session", self._session)
        yield Route("/metrics", self._metrics)
        yield Route("/act", self._act, methods=["POST"])

    async def _page(self, _request: Request) -> Response:
        return self._file("index.html")

    async def _asset(self, request: Request) -> Response:
        name: str = request.path_params["name"]
        return self._file(name) if name in self._assets else _refusal(404, "no such file")

    def _file(self, name: str) -> Response:
        data, kind = self._assets[name]
        return Response(data, media_type=kind, headers={"cache-control": "no-cache"})

    async def _session(self, _request: Request) -> Response:
        """What the page may do; only pages of this site can read it."""
        told: dict[str, Any] = {"actions": self._actions, "own": self._own}
        if self._actions:
            told["key"] = self.guard.action_key
        return JSONResponse(told, headers=NO_STORE)

    async def _stream(self, request: Request) -> Response:
        view: str = request.path_params["view"]
        try:
            self.channels.check_room(view)
        except KeyError:
            return _refusal(404, f"no view {view!r}")
        except TooManyPages:
            return _refusal(503, "too many pages are open")
        told = self.channels.stream(view)
        return StreamingResponse(told, media_type="text/event-stream", headers=NO_STORE)

    async def _view(self, request: Request) -> Response:
        """A view as it is known now, for programs; it is as old as the last question."""
        try:
            build, _ = view_of(request.path_params["view"])
        except KeyError:
            return _refusal(404, "no such view")
        data = msgspec.json.encode(without_nulls(build(self.hub)))
        return Response(data, media_type="application/json", headers=NO_STORE)

    async def _metrics(self, _request: Request) -> Response:
        text = await scrape(self.hub, self._own, self._of_itself())
        return Response(text, media_type=CONTENT_TYPE, headers=NO_STORE)

    def _of_itself(self) -> dict[str, int]:
        return {
            "pages": self.channels.pages,
            "sent": self.channels.bytes_sent,
            "turned away": self.channels.turned_away,
            **{f"refused {reason}": count for reason, count in self.guard.refused.items()},
        }

    async def _act(self, request: Request) -> Response:
        if not self._actions:
            return _refusal(403, "this dashboard only shows: start it with --allow-actions")
        if not self.guard.may_act(request.headers):
            return _refusal(403, "not from a page of this dashboard")
        body = b""
        async with aclosing(request.stream()) as parts:
            async for part in parts:
                body += part
                if len(body) > BODY_BYTES:
                    return _refusal(413, f"an action has at most {BODY_BYTES} bytes")
        try:
            return JSONResponse(await act(self.hub, read_action(body)), headers=NO_STORE)
        except ControlError as error:
            return _refusal(502, str(error))
        except OverlayError as error:
            return _refusal(400, str(error))


def _refusal(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status_code=status, headers=NO_STORE)
