"""The dashboard over HTTP: routes, who may use them, streams, metrics, actions, and its end."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
import trio

from nodes.dashboard.security import HEADERS
from nodes.dashboard.server import Serving, serving
from nodes.folders import private_folder
from nodes.peer import Peer
from overlay.errors import ConfigError
from tests.net.processes import OVERLAY, environment, overlay, peer
from tests.net.zone import DEADLINE, Zone

parser = pytest.importorskip("prometheus_client.parser")


def get(
    dashboard: Serving, path: str, method: str = "GET", body: str | None = None, **headers: str
) -> tuple[int, dict[str, str], str]:
    """One request; blocks, so it is for a thread."""
    host, _, port = dashboard.address.rpartition(":")
    link = HTTPConnection(host, int(port), timeout=DEADLINE)
    try:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        link.request(method, path, body, told)
        answer = link.getresponse()
        text = answer.read().decode()
        return answer.status, {n.lower(): v for n, v in answer.getheaders()}, text
    finally:
        link.close()


async def ask(
    dashboard: Serving, path: str, method: str = "GET", body: str | None = None, **headers: str
) -> tuple[int, dict[str, str], str]:
    return await trio.to_thread.run_sync(
        lambda: get(dashboard, path, method, body, **headers), abandon_on_cancel=True
    )


class Stream:
    """Server-sent events of one view."""

    def __init__(self, dashboard: Serving, view: str) -> None:
        host, _, port = dashboard.address.rpartition(":")
        self._link = HTTPConnection(host, int(port), timeout=DEADLINE)
        self._link.request("GET", f"/stream/{view}")
        self.answer: HTTPResponse = self._link.getresponse()

    def next(self) -> tuple[str, dict[str, Any]]:
        """The next event: its kind and its data."""
        kind = ""
        while line := self.answer.readline().decode():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ").strip()
            elif line.startswith("data: "):
                return kind, json.loads(line.removeprefix("data: "))
        return "end", {}

    def close(self) -> None:
        self._link.close()


@asynccontextmanager
async def watched(
    tmp_path: Path, *, role: bool = False, **more: Any
) -> AsyncIterator[tuple[Serving, Peer, Peer]]:
    """Two peers of this process, and their dashboard."""
    zone = Zone(tmp_path / "keys", secure=False)
    folder = private_folder(tmp_path / "run")
    with trio.fail_after(2 * DEADLINE):
        async with zone.peer("ada") as ada, zone.peer("bob", ada) as bob:
            await ada.joined(count=2)
            if role:
                more["peer"] = ada
            async with serving("127.0.0.1:0", folder=folder, **more) as dashboard:
                yield dashboard, ada, bob


def test_a_role_serves_the_page_views_and_metrics_of_its_peer(tmp_path: Path) -> None:
    async def main() -> None:
        async with watched(tmp_path, role=True) as (dashboard, ada, _):
            status, headers, text = await ask(dashboard, "/")
            assert status == 200
            assert "<title>overlay</title>" in text
            assert HEADERS.items() <= headers.items()
            for word in text.split('"'):
                if word.startswith("/assets/"):
                    assert (await ask(dashboard, word))[0] == 200, word
            assert (await ask(dashboard, "/assets/../app.py"))[0] == 404
            assert (await ask(dashboard, "/nothing"))[0] == 404
            assert (await ask(dashboard, "/stream/nothing"))[0] == 404
            assert (await ask(dashboard, "/", "POST"))[0] == 405
            status, headers, text = await ask(dashboard, "/metrics")
            assert headers["content-type"].startswith("text/plain; version=0.0.4")
            samples = [
                sample
                for family in parser.text_string_to_metric_families(text)
                for sample in family.samples
            ]
            own = [one for one in samples if "node" in one.labels]
            assert {one.labels["node"] for one in own} == {"ada"}
            assert {one.labels["zone"] for one in own} == {ada.zone}
            found = {(one.name, one.labels.get("protocol", "")): one.value for one in samples}
            assert found["overlay_zone_members", ""] == 2
            assert found["overlay_membership_joined_total", f"membership@{ada.zone}"] == 1
            counters = ada.node.status().driver.counters
            assert 0 < found["overlay_sent_bytes_total", ""] <= counters["bytes sent"]

    trio.run(main)


def test_strangers_names_and_actions_are_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with watched(tmp_path, role=True) as (dashboard, _, _):
            assert (await ask(dashboard, "/", Host="evil.example"))[0] == 421
            assert (await ask(dashboard, "/metrics", Host="evil.example:80"))[0] == 421
            action = json.dumps({"do": "leave", "overlay": "testing", "node": "ada"})
            status, _, text = await ask(dashboard, "/act", "POST", action)
            assert (status, text) == (
                403,
                "this dashboard only shows: start it with --allow-actions\n",
            )
            assert json.loads((await ask(dashboard, "/session"))[2])["actions"] is False

    trio.run(main)


def test_actions_need_the_token_and_the_page(tmp_path: Path) -> None:
    async def main() -> None:
        async with watched(tmp_path, role=True, actions=True) as (dashboard, ada, _):
            assert dashboard.url.endswith(f"?token={dashboard.token}")
            assert (await ask(dashboard, "/session"))[0] == 401
            pass_ = {"Authorization": f"Bearer {dashboard.token}"}
            key = json.loads((await ask(dashboard, "/session", **pass_))[2])["key"]
            mine = pass_ | {"X-Overlay-Action": key, "Origin": f"http://{dashboard.address}"}
            action = {"do": "trace", "overlay": "testing", "node": "ada", "level": "off"}

            async def act(headers: dict[str, str], **more: str) -> tuple[int, str]:
                body = json.dumps(action | more)
                status, _, text = await ask(dashboard, "/act", "POST", body, **headers)
                return status, text

            assert (await act(pass_))[0] == 403
            assert (await act(mine | {"Origin": "http://evil.example"}))[0] == 403
            assert (await act(mine | {"X-Overlay-Action": "x"}))[0] == 403
            assert (await act(mine, do="dht-retire"))[0] == 400
            assert (await act(mine, level="everything"))[0] == 400
            assert (await act(mine, node="x" * 5000))[0] == 413
            assert (await act(mine, node="nobody"))[0] == 400
            assert await act(mine) == (200, '{"done":"ada records off"}')
            assert await act(mine, do="leave", level="") == (200, '{"done":"ada leaves"}')
            await ada.run()

    trio.run(main)


def test_a_stream_tells_all_and_then_what_changes(tmp_path: Path) -> None:
    def look(dashboard: Serving) -> tuple[dict[str, Any], dict[str, Any], int]:
        page = Stream(dashboard, "overview")
        kind, model = page.next()
        assert kind == "state"
        while not (seen := model.get("overlays", {}).get("testing", {}).get("zones")):
            model = page.next()[1]
        trio.from_thread.run_sync(change.set)
        size = 0
        while True:
            kind, patch = page.next()
            assert kind == "patch"
            size += len(json.dumps(patch))
            members = patch.get("overlays", {}).get("testing", {}).get("zones", {})
            if "cyd" in json.dumps(members):
                page.close()
                return seen, members, size

    change = trio.Event()

    async def main() -> None:
        async with watched(tmp_path, role=True) as (dashboard, ada, _):
            found: list[Any] = []
            told = trio.Event()

            async def follow() -> None:
                found.extend(await trio.to_thread.run_sync(look, dashboard))
                told.set()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(follow)
                await change.wait()
                zone = Zone(tmp_path / "keys2", secure=False)
                async with zone.peer("cyd", ada):
                    await told.wait()
            seen, patch, size = found
            assert set(seen[ada.zone]["members"]) == {"ada", "bob"}
            assert list(patch[ada.zone]["members"]) == ["cyd"]
            assert size < 2000
            with trio.fail_after(DEADLINE):
                while dashboard.hub.is_watched:  # noqa: ASYNC110 - until the server notices
                    await trio.sleep(0.05)

    trio.run(main)


def test_addresses_that_cannot_be_had_are_told_in_a_line(tmp_path: Path) -> None:
    async def main(address: str) -> None:
        async with serving(address, folder=tmp_path):
            raise AssertionError

    for address, said in (
        ("127.0.0.1:x", "no address for a dashboard"),
        ("127.0.0.1:99999", "no address for a dashboard"),
        ("192.0.2.1:7480", "cannot listen at 192.0.2.1:7480"),
    ):
        with pytest.raises(ConfigError, match=said):
            trio.run(main, address)


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("r")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_dashboard_ends_in_good_order_with_pages_open(runtime: Path, number: int) -> None:
    process = subprocess.Popen(
        [*OVERLAY, "dashboard", "--bind", "127.0.0.1:0", "--json"],
        env=environment(runtime),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        address = told["address"]
        dashboard = Serving(told["url"], address, "", None)  # type: ignore[arg-type]
        page = Stream(dashboard, "overview")
        assert page.next()[0] == "state"
        process.send_signal(number)
        _, errors = process.communicate(timeout=DEADLINE)
        assert (process.returncode, errors) == (0, "")
        assert page.next()[0] in ("end", "patch")
        page.close()
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE)


def test_a_peer_with_the_role_tells_where_it_is(runtime: Path) -> None:
    words = ("--insecure", "--name", "ada", "--zone", "lab", "--dashboard", "127.0.0.1:0")
    with peer(runtime, *words) as ada:
        url = ada.told["dashboard"]
        dashboard = Serving(url, url.split("/")[2], "", None)  # type: ignore[arg-type]
        status, _, text = get(dashboard, "/metrics")
        assert status == 200
        assert 'node="ada"' in text
        assert overlay(runtime, "stop", "ada").returncode == 0
        code, errors = ada.ended()
        assert code == 0
        assert "Traceback" not in errors


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    async def main() -> None:
        async with serving(folder=tmp_path):
            raise AssertionError

    with pytest.raises(ConfigError, match=r"pip install 'zmq-overlay\[web\]'"):
        trio.run(main)
