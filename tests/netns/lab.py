"""The lab: hosts on networks, and what a test may do to the wires between them.

    with Lab() as lab:
        a, b, c = lab.hosts("a", "b", "c")
        lab.loss(10)
        lab.partition([a], [b, c])
        ...
        lab.heal()

Each host is a network namespace; the bridges between them live in one more, the switch. Nothing
is made in the machine's own namespace, so that deleting those namespaces removes everything.
"""

from __future__ import annotations

import atexit
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.netns.commands import inside, ip, nft, run
from tests.netns.delays import Delays
from tests.netns.faults import Faults
from tests.netns.host import Host, Network, Port
from tests.netns.naming import SWITCH, LabName, next_name
from tests.netns.sweep import remove, sweep
from tests.netns.switch import Pace

LAN = "lan"
MOST_HOSTS = 250  # addresses of a /24

# No duplicate address detection: an address is usable at once. A loss-based congestion control,
# since bbr, the default of many machines, hides loss; the kernel lets a namespace choose only
# what the machine allows, and reno is always allowed.
_HOST_SETTINGS = """
cd /proc/sys/net
if [ -d ipv6/conf ]; then echo 0 > ipv6/conf/default/accept_dad; fi
(echo cubic > ipv4/tcp_congestion_control) 2>/dev/null ||
    (echo reno > ipv4/tcp_congestion_control) 2>/dev/null || true
"""
# The switch itself is silent: it has no addresses and asks nobody.
_SWITCH_SETTINGS = """
cd /proc/sys/net
if [ -d ipv6/conf ]; then echo 1 > ipv6/conf/default/disable_ipv6; fi
"""


class Lab:
    """Hosts on networks; it ends with the `with` block, or when the process does."""

    def __init__(self) -> None:
        self.name: LabName = next_name()
        self.switch = self.name.namespace(SWITCH)
        self._hosts: dict[str, Host] = {}
        self._networks: dict[str, Network] = {}
        self._faults = Faults()
        self._delays = Delays(self.switch)
        self._everywhere: Pace | None = None
        self._ports = 0
        self._unplugged: dict[Port, None] = {}
        self._isolated: dict[Port, None] = {}

    def __enter__(self) -> Self:
        sweep()
        atexit.register(self.close)
        try:
            self.name.folder.mkdir(mode=0o700)
            run(["ip", "netns", "add", self.switch])
            run(inside(self.switch, ["sh", "-ec", _SWITCH_SETTINGS]))
            nft(self.switch, self._faults.script())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process and remove every trace; harmless twice."""
        try:
            for host in self._hosts.values():
                for process in host.processes:
                    process.close()
            self._delays.close()
        finally:
            remove(self.name)
            atexit.unregister(self.close)

    # ------------------------------------------------------------------------------- building

    def host(self, name: str, networks: Sequence[str] = (LAN,)) -> Host:
        """Add a host with one interface (`eth0`, `eth1`, …) on each of these networks.

        Its default route is through the first, as on a machine with one router.
        """
        if not re.fullmatch(r"[a-z0-9-]{1,32}", name) or name == SWITCH or name in self._hosts:
            raise ValueError(f"host name {name!r}: taken, or not of a-z, 0-9 and -")
        if not networks or len(set(networks)) < len(networks):
            raise ValueError(f"networks {networks}: name at least one, and each once")
        number = len(self._hosts) + 1
        if number > MOST_HOSTS:
            raise ValueError(f"a lab has at most {MOST_HOSTS} hosts")
        ports = [
            self._port(self._network(network), number, index)
            for index, network in enumerate(networks)
        ]
        host = Host(name, self.name.namespace(name), self._folder(name), ports)
        self._hosts[name] = host
        self._cable(host)
        if self._everywhere is not None:
            self._delays.pace(ports, self._everywhere)
        return host

    def hosts(self, *names: str) -> tuple[Host, ...]:
        """Add several hosts on the default network."""
        return tuple(self.host(name) for name in names)

    def _network(self, name: str) -> Network:
        if name not in self._networks:
            network = self._networks[name] = Network(name, len(self._networks) + 1)
            ip(
                self.switch,
                # Without snooping a group reaches everybody, as on most small switches.
                f"link add {network.bridge} type bridge stp_state 0 mcast_snooping 0",
                f"link set {network.bridge} up",
            )
        return self._networks[name]

    def _port(self, network: Network, host: int, index: int) -> Port:
        self._ports += 1
        interface = f"eth{index}"
        return Port(self._ports, network, interface, network.ipv4(host), network.ipv6(host))

    def _folder(self, name: str) -> Path:
        folder = self.name.folder / name
        folder.mkdir(mode=0o700)
        return folder

    def _cable(self, host: Host) -> None:
        run(["ip", "netns", "add", host.namespace])
        run(inside(host.namespace, ["sh", "-ec", _HOST_SETTINGS]))
        for port in host.ports:
            ip(
                self.switch,
                f"link add {port.plug} type veth peer name {port.interface} netns {host.namespace}",
                f"link set {port.plug} master {port.network.bridge} up",
            )
        has_ipv6 = Path("/proc/sys/net/ipv6").is_dir()
        lines = ["link set lo up"]
        for metric, port in enumerate(host.ports, start=1):
            device = f"dev {port.interface}"
            lines += [f"address add {port.ipv4}/24 brd + {device}", f"link set {port.interface} up"]
            if has_ipv6:
                lines.append(f"address add {port.ipv6}/64 {device} nodad")
            # Nobody answers at the router's address: the route only says which interface is first.
            lines.append(f"route add default via {port.network.ipv4(254)} {device} metric {metric}")
            if has_ipv6:
                router = port.network.ipv6(254)
                lines.append(f"route add ::/0 via {router} {device} metric {metric}")
        ip(host.namespace, *lines)

    # --------------------------------------------------------------------------------- faults

    def loss(self, percent: float, hosts: Iterable[Host] = ()) -> None:
        """Lose that share of all frames, each way; or, on top, of those from and to some hosts."""
        self._faults.lose(percent, _ports_of(hosts))
        nft(self.switch, self._faults.script())

    def partition(self, *groups: Iterable[Host], one_way: bool = False) -> None:
        """Cut groups off from each other; `one_way`: only what the first sends to the second.

        It adds to the cuts that are in force; a host in no group still reaches everybody.
        """
        self._faults.partition(groups, one_way=one_way)
        nft(self.switch, self._faults.script())

    def isolate(self, *hosts: Host) -> None:
        """Let these hosts reach everybody but each other, by the bridge's own means."""
        for port in _ports_of(hosts):
            self._isolated[port] = None
            self._bridge_port(port, "isolated on")

    def unplug(self, host: Host, network: str | None = None) -> None:
        """Pull the cable at the switch's end: the host sees no carrier, and keeps its routes."""
        for port in host.ports:
            if network in (None, port.network.name):
                self._unplugged[port] = None
                ip(self.switch, f"link set {port.plug} down")

    def heal(self) -> None:
        """End every partition and isolation, and plug in every cable; loss and delay stay."""
        self._faults.cuts.clear()
        nft(self.switch, self._faults.script())
        for port in self._isolated:
            self._bridge_port(port, "isolated off")
        self._isolated.clear()
        for port in self._unplugged:
            ip(self.switch, f"link set {port.plug} up")
        self._unplugged.clear()

    def delay(
        self,
        milliseconds: float,
        jitter: float = 0.0,
        *,
        reorder: bool = False,
        copied: float = 0.0,
        hosts: Iterable[Host] = (),
    ) -> None:
        """Hold every frame so long, one way, ± `jitter` ms; or only what some hosts send.

        Frames keep their order unless `reorder`, and `copied` percent come twice. The first
        delay puts the user-space switch in the way, which may lose the frames of that moment.
        """
        if milliseconds < 0 or jitter < 0:
            raise ValueError(f"delay of {milliseconds} ± {jitter} ms: neither may be negative")
        if not 0 <= copied <= 100:
            raise ValueError(f"copies of {copied} %: write 0 to 100")
        pace = Pace(milliseconds / 1000, jitter / 1000, reorder, copied / 100)
        chosen = _ports_of(hosts)
        if not chosen:
            self._everywhere = pace
            chosen = _ports_of(self._hosts.values())
        isolated = [port for port in chosen if port in self._isolated]
        self._delays.pace(chosen, pace)
        for port in isolated:
            self._bridge_port(port, "isolated on")

    def switched(self) -> dict[str, int]:
        """What the user-space switch counted: frames held, copied, overtaking, lost and why."""
        return self._delays.counts()

    def _bridge_port(self, port: Port, setting: str) -> None:
        on_bridge = port.far_tap if self._delays.delays(port) else port.plug
        ip(self.switch, f"link set {on_bridge} type bridge_slave {setting}")


def _ports_of(hosts: Iterable[Host]) -> list[Port]:
    return [port for host in hosts for port in host.ports]
