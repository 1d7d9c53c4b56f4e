"""Headless Chromium, driven by its DevTools protocol: a page as people see it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Request, TextMessage

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
SETPRIV = shutil.which("setpriv")
ENDING = () if SETPRIV is None else (SETPRIV, "--pdeathsig", "KILL")  # with whoever started it
MISSING = "no Chromium: apt-get install -y chromium shows pages to a test"
DEADLINE = 60.0
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0"),
)


class PageFailed(AssertionError):
    """A script of the page failed, or what was awaited did not come."""


class Page:
    """One tab."""

    def __init__(self, link: socket.socket, host: str, path: str) -> None:
        self._link = link
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._number = 0
        self._text = ""
        self._answers: dict[int, dict[str, Any]] = {}
        self.complaints: list[str] = []  # errors of scripts and of the console
        self.received = 0  # bytes, of streams too
        link.sendall(self._protocol.send(Request(host=host, target=path)))
        self._pump(lambda: self._open)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(f"{domain}.enable")

    _open = False

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its result."""
        self._number += 1
        number = self._number
        line = json.dumps({"id": number, "method": method, "params": params})
        self._link.sendall(self._protocol.send(TextMessage(line)))
        self._pump(lambda: number in self._answers)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise PageFailed(f"{method}: {answer['error']['message']}")
        found: dict[str, Any] = answer["result"]
        return found

    def go(self, url: str) -> None:
        """Open an address, and wait until its document is there."""
        self.do("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && document.body !== null")

    def tell(self, script: str) -> Any:
        """What an expression is in the page."""
        told = self.do("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise PageFailed(str(told["exceptionDetails"].get("exception", told)))
        return told["result"].get("value")

    def until(self, script: str, within: float = DEADLINE) -> Any:
        """Wait until an expression is true in the page; its value."""
        deadline = time.monotonic() + within
        while not (value := self.tell(script)):
            if time.monotonic() > deadline:
                raise PageFailed(f"waited {within:g} s in vain for {script}; {self.complaints}")
            time.sleep(0.05)
        return value

    def look(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        """Be a window of that size and scheme."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def shoot(self, path: Path) -> None:
        """Save what is seen."""
        told = self.do("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        path.write_bytes(base64.b64decode(told["data"]))

    def rows(self, table: str) -> list[list[str]]:
        """The texts of a table's cells."""
        found: list[list[str]] = self.tell(
            f"[...document.querySelectorAll('[data-table=\"{table}\"] tbody tr')]"
            ".map(row => [...row.cells].map(cell => cell.textContent))"
        )
        return found

    def _pump(self, done: Callable[[], bool]) -> None:
        self._link.settimeout(DEADLINE)
        while not done():
            data = self._link.recv(1 << 16)
            if not data:
                raise PageFailed("the browser went away")
            self._protocol.receive_data(data)
            for event in self._protocol.events():
                if isinstance(event, AcceptConnection):
                    self._open = True
                elif isinstance(event, TextMessage):
                    self._text += event.data
                    if event.message_finished:
                        self._take(json.loads(self._text))
                        self._text = ""

    def _take(self, told: dict[str, Any]) -> None:
        if "id" in told:
            self._answers[told["id"]] = told
            return
        method, params = told["method"], told["params"]
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.dataReceived":
            self.received += params["encodedDataLength"] or params["dataLength"]


@contextmanager
def browser() -> Iterator[Page]:
    """A fresh browser with one page; it is gone afterwards, and so is all that it wrote."""
    if CHROMIUM is None:
        raise PageFailed(MISSING)
    with tempfile.TemporaryDirectory(prefix="overlay-browser-", ignore_cleanup_errors=True) as home:
        process = subprocess.Popen(
            [*ENDING, CHROMIUM, *FLAGS, f"--user-data-dir={home}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": home},
            start_new_session=True,
        )
        try:
            port = _port(Path(home), process)
            with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=DEADLINE) as answer:
                tabs = [one for one in json.load(answer) if one["type"] == "page"]
            path = tabs[0]["webSocketDebuggerUrl"].partition(f":{port}")[2]
            with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as link:
                yield Page(link, f"127.0.0.1:{port}", path)
        finally:
            os.killpg(process.pid, 9)
            process.wait()


def _port(home: Path, process: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + DEADLINE
    told = home / "DevToolsActivePort"
    while time.monotonic() < deadline and process.poll() is None:
        if told.exists() and (lines := told.read_text().splitlines()):
            return int(lines[0])
        time.sleep(0.02)
    raise PageFailed("the browser did not start")
