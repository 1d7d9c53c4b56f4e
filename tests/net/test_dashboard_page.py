"""The page in a browser: what it shows is what the commands say, after kills and joins, too."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from bench.browser import CHROMIUM, MISSING, Page, browser
from nodes.cli.main import run
from tests.net.processes import RunningPeer, peer
from tests.netns.waiting import until

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
QUICK = (
    *("--insecure", "--set", "zones.settle=0.3", "--set", "dht.serve=true"),
    *("--set", "dht.shard_bits=6"),
)
ZONES = {"ada": "east", "bob": "west", "ben": "west"}


class Lab:
    """Peers in processes, one of which serves the page."""

    def __init__(self, runtime: Path, stack: ExitStack) -> None:
        self.runtime = runtime
        self._stack = stack
        self.peers: dict[str, RunningPeer] = {}
        first = self.start("ada", "east", "--dashboard", "127.0.0.1:0")
        self.url: str = first.told["dashboard"]
        self._address = first.address
        for name, zone in ZONES.items():
            if name != "ada":
                self.join(name, zone)

    def start(self, name: str, zone: str, *words: str) -> RunningPeer:
        started = peer(self.runtime, "--name", name, "--zone", zone, *QUICK, *words)
        self.peers[name] = found = self._stack.enter_context(started)
        return found

    def join(self, name: str, zone: str) -> None:
        self.start(name, zone, "--seed", self._address)

    def told(self, *words: str) -> Any:
        """What a command prints; in this process, since it is asked often."""
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
            patch.setenv("XDG_RUNTIME_DIR", str(self.runtime))
            assert run([*words, "--json"]) == 0, words
        return json.loads(said.getvalue())

    def members(self) -> set[tuple[str, str, str]]:
        """Name, zone and state, as `overlay members` says."""
        return {
            (one["name"], view["zone"], one["state"])
            for view in self.told("members")["views"]
            for one in view["members"]
        }

    def zones(self) -> set[tuple[str, str, str]]:
        """Name, size and delegates, as `overlay zones` says."""
        (table,) = self.told("zones")["overlays"]
        return {
            (zone["name"], str(zone["size"]), ", ".join(sorted(zone["delegates"])))
            for zone in table["zones"]
        }


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("r")


@pytest.fixture(scope="module")
def lab(runtime: Path) -> Iterator[Lab]:
    with ExitStack() as stack:
        yield Lab(runtime, stack)


@pytest.fixture
def page() -> Iterator[Page]:
    with browser() as opened:
        opened.look(1280, 900)
        yield opened
        assert not opened.complaints


def shown_members(page: Page) -> set[tuple[str, str, str]]:
    return {(row[0], row[1], row[2]) for row in page.rows("members")}


def shown_zones(page: Page) -> set[tuple[str, str, str]]:
    rows = page.rows("zones")
    return {(row[0], row[1], ", ".join(sorted(row[2].split(", ")))) for row in rows}


def settled(lab: Lab, page: Page, names: dict[str, str]) -> None:
    """Wait until the page shows these members, as the commands say it, and the same zones."""

    alive = {(name, zone, "alive") for name, zone in names.items()}

    def complete() -> bool:
        return shown_members(page) == alive and len(page.rows("zones")) == 2

    def agree() -> bool:
        return shown_members(page) == lab.members() == alive and shown_zones(page) == lab.zones()

    until(complete, what=f"{list(names)} on the page")
    until(agree, what="the same in the terminal")


def test_members_and_zones_are_what_the_commands_say(lab: Lab, page: Page) -> None:
    page.go(lab.url)
    settled(lab, page, ZONES)
    assert page.tell("document.querySelector('[data-tile=members]').textContent") == "3"

    def links_agree() -> bool:
        nodes = {one["node"]: one["links"] for one in lab.told("topology")["nodes"]}
        shown = {row[0]: row[4] for row in page.rows("members")}
        return shown == {name: str(len(links)) for name, links in nodes.items()}

    until(links_agree, what="the links that `overlay topology` tells")

    lab.peers["ben"].signal(9)
    left = {name: zone for name, zone in ZONES.items() if name != "ben"}
    settled(lab, page, left)
    lab.join("cyd", "west")
    settled(lab, page, left | {"cyd": "west"})

    page.tell("location.hash = '#/events'")
    said = "[...document.querySelectorAll('[data-table=events] .says')].map(one => one.textContent)"
    page.until(f"{said}.includes('ben failed')")
    page.until(f"{said}.includes('cyd joined')")
    page.tell(
        "const filter = document.querySelector('input[type=search]');"
        "filter.value = 'ben failed'; filter.dispatchEvent(new Event('input'))"
    )
    assert set(page.tell(said)) == {"ben failed"}


def test_a_node_and_the_hash_table_are_what_the_commands_say(lab: Lab, page: Page) -> None:
    lab.told("set", "rack=<b>7</b>", "--node", "bob")
    (status,) = lab.told("status", "bob")["nodes"]
    page.go(f"{lab.url}#/node/{status['driver']['overlay']}/bob")
    page.until("document.body.innerText.includes('rack')")
    text = page.tell("document.querySelector('main').innerText")
    assert "<b>7</b>" in text, "what peers say is text, never markup"
    assert status["driver"]["endpoints"][0] in text
    assert f"process {status['pid']}" in text

    def links_agree() -> bool:
        (now,) = lab.told("status", "bob")["nodes"]
        shown = {(row[0], row[1]) for row in page.rows("links")}
        return shown == {(link["peer"], link["state"]) for link in now["driver"]["links"]}

    until(links_agree, what="the links that `overlay status` tells")
    page.until(
        "[...document.querySelectorAll('[data-table=links] tbody tr')]"
        ".some(row => row.cells[3].textContent.endsWith('ms'))"
    )
    count = "document.querySelector('[data-count=\"membership@west/joined\"] b')?.textContent"
    joined = status["protocols"]["membership@west"]["joined"]
    assert int(page.until(count)) >= joined

    page.tell("location.hash = '#/dht'")

    def table_agrees() -> bool:
        nodes = lab.told("dht", "stats")["nodes"]
        wanted = {(one["node"], f"{one['shards']:,}", f"{one['leads']:,}") for one in nodes}
        return {(row[0], row[4], row[5]) for row in page.rows("dht")} == wanted

    until(table_agrees, what="what `overlay dht stats` tells")
    page.tell("location.hash = '#/time'")

    def clocks_agree() -> bool:
        nodes = lab.told("time")["nodes"]
        roots = {(one["node"], str(one["stratum"])) for one in nodes}
        return {(row[0], row[5]) for row in page.rows("time")} == roots

    until(clocks_agree, what="what `overlay time` tells")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_view_fits_a_phone(lab: Lab, page: Page, dark: bool) -> None:
    page.look(390, 844, dark=dark, phone=True)
    page.go(lab.url)
    for path in ("", "topics", "dht", "time", "discovery", "colonies", "events"):
        page.tell(f"delete document.body.dataset.painted; location.hash = '#/{path}'")
        page.until("document.body.dataset.painted")
        assert page.tell("document.documentElement.scrollWidth <= innerWidth"), path
    colour = page.tell("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, colour[4:-1].split(","))) < 300) is dark
