"""The lab's side of the user-space switch: it plugs ports into delay lines, on the first delay."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping

from tests.netns import switch
from tests.netns.commands import LabError, inside, ip, tool
from tests.netns.host import Port
from tests.netns.switch import Pace
from tests.netns.waiting import WITHIN


class Delays:
    """Starts the switch when it is first needed: without a delay all frames stay in the kernel."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._process: subprocess.Popen[str] | None = None
        self._delayed: dict[Port, Pace] = {}

    def pace(self, ports: Iterable[Port], pace: Pace) -> None:
        """Hold what these ports send, from now on."""
        chosen = list(ports)
        if not (pace.seconds or pace.jitter or pace.copied):
            chosen = [port for port in chosen if port in self._delayed]  # others need no line
        for port in chosen:
            if port not in self._delayed:
                self._insert(port)
            self._delayed[port] = pace
        if chosen:
            self._order({"pace": list(pace), "ports": [port.number for port in chosen]})

    def delays(self, port: Port) -> bool:
        """True when the port has a delay line, whatever its pace."""
        return port in self._delayed

    def counts(self) -> dict[str, int]:
        """Frames that were held, overtook others or came twice, and that were lost and why."""
        return self._order({"counts": True}) if self._process else {}

    def close(self) -> None:
        """End the switch; its devices go with it."""
        if self._process is None:
            return
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(WITHIN)
            except subprocess.TimeoutExpired:
                process.kill()
        self._process = None

    def _insert(self, port: Port) -> None:
        """Take the plug from its network's bridge, and put the delay line between the two."""
        self._order({"add": port.number})
        ip(
            self._namespace,
            f"link add {port.stub} type bridge stp_state 0 mcast_snooping 0",
            f"link set {port.near_tap} master {port.stub} up",
            f"link set {port.far_tap} master {port.network.bridge} up",
            f"link set {port.stub} up",
            f"link set {port.plug} master {port.stub}",
        )

    def _order(self, order: Mapping[str, object]) -> dict[str, int]:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise LabError(f"the switch ended when it was told {order}: see its words on stderr")
        counts: dict[str, int] = json.loads(answer)
        return counts

    def _start(self) -> subprocess.Popen[str]:
        ip_words, *rest = inside(self._namespace, [sys.executable, "-I", switch.__file__])
        self._process = subprocess.Popen(
            [tool(ip_words), *rest],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self._process
