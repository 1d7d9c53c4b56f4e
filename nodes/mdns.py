"""mDNS and DNS-SD (RFC 6762, 6763): a second way to find others, where beacons do not pass.

Many switches and access points drop multicast groups that they do not know, and forward this one.
The library costs 35 ms and 5 MB, has a thread, and takes 1.7 s to register; so it is loaded only
where it can help (`beacon.mdns = "auto"`): on a node that beacons left alone, and on delegates, so
that each zone is registered by somebody. A node that is only at loopback never needs it. All of it
runs in threads; what it finds goes the way of any other candidate, and is believed no more.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import socket
import threading
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from overlay.errors import OverlayError
from overlay.ids import NodeId, check_name, vid_of
from overlay.logs import about
from overlay.net.addresses import Endpoint, is_loopback, parse_endpoint
from protocols.beacon import Beacon, NobodyFound, Presence
from protocols.zones import DelegateAppointed

if TYPE_CHECKING:
    from zeroconf import ServiceBrowser, ServiceInfo, ServiceStateChange, Zeroconf

    from nodes.node import Node

log = logging.getLogger("overlay.mdns")

SERVICE = "_zmq-overlay._tcp.local."
ASK_FOR = 1000  # ms for the details of one service
MOST = 256  # services that are looked at; a LAN has a few, since only some nodes register
CLOSE_WITHIN = 1.0  # s
TEXT = 255  # bytes of one entry


class Mdns:
    """Registers this node, and suggests to its beacon whom it sees; `run` it beside the node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._wanted = trio.Event()
        self._seen: dict[str, bytes] = {}  # what each service told last
        self._zeroconf: Zeroconf | None = None
        self._browser: ServiceBrowser | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._token: trio.lowlevel.TrioToken
        settings = node.protocol(Beacon).config
        if settings.mdns == "always":
            self._wanted.set()
        elif settings.mdns == "auto":
            node.listen((NobodyFound,), lambda _: self._wanted.set())
            node.listen((DelegateAppointed,), self._on_delegate)

    def _on_delegate(self, event: DelegateAppointed) -> None:
        if event.delegate == self._node.name:
            self._wanted.set()

    async def run(self) -> None:
        """Wait until it is wanted, then serve until cancelled; withdraws what it registered."""
        await self._wanted.wait()
        endpoints = reachable(self._node.endpoints)
        if not endpoints:
            return
        self._token = trio.lowlevel.current_trio_token()
        try:
            await trio.to_thread.run_sync(self._open, endpoints, abandon_on_cancel=True)
            await trio.sleep_forever()
        finally:
            with trio.move_on_after(CLOSE_WITHIN) as scope:
                scope.shield = True
                await trio.to_thread.run_sync(self._close, abandon_on_cancel=True)

    # -- in threads -----------------------------------------------------------------------------

    def _open(self, endpoints: list[Endpoint]) -> None:
        from zeroconf import Error, ServiceBrowser, Zeroconf

        hosts = list(dict.fromkeys(endpoint.host for endpoint in endpoints))
        try:
            with self._lock:
                if self._closed:
                    return
                self._zeroconf = Zeroconf(interfaces=hosts)
                self._browser = ServiceBrowser(self._zeroconf, SERVICE, handlers=[self._on_change])
            self._zeroconf.register_service(self._info(endpoints))
        except (OSError, Error) as error:  # no interface that can multicast, or it is closing
            if not self._closed:
                log.warning(
                    "mDNS is not available: %s",
                    str(error) or type(error).__name__,
                    extra=about("mdns-unavailable", "beacon"),
                )

    def _info(self, endpoints: list[Endpoint]) -> ServiceInfo:
        from zeroconf import ServiceInfo

        node = self._node
        text = texts(node.name, node.protocol(Beacon).presence, node.fingerprint)
        label = service_label(node.name, text)
        return ServiceInfo(
            SERVICE,
            f"{label}.{SERVICE}",
            port=endpoints[0].port,
            addresses=[_packed(endpoint.host) for endpoint in endpoints],
            properties=dict(text),
            server=f"{label}.local.",
        )

    def _on_change(
        self,
        zeroconf: Zeroconf,
        service_type: str,
        name: str,
        state_change: ServiceStateChange,
    ) -> None:
        """In the browser's own thread, which may wait."""
        from zeroconf import ServiceInfo, ServiceStateChange

        if state_change is ServiceStateChange.Removed:
            self._seen.pop(name, None)
            return
        if len(self._seen) >= MOST and name not in self._seen:
            return
        info = ServiceInfo(service_type, name)
        if not info.load_from_cache(zeroconf) and not info.request(zeroconf, ASK_FOR):
            return
        text = info.text or b""
        if self._seen.get(name) == text:
            return
        self._seen[name] = text
        read = read_texts(info.properties)
        if read is None or read[0] == self._node.name:
            return
        try:
            trio.from_thread.run_sync(self._suggest, *read, trio_token=self._token)
        except trio.RunFinishedError:
            return

    def _close(self) -> None:
        with self._lock:
            self._closed = True
        if self._zeroconf is not None:
            self._zeroconf.unregister_all_services()
            self._zeroconf.close()

    # -- in the node's loop -----------------------------------------------------------------------

    def _suggest(self, name: NodeId, who: Presence) -> None:
        if self._node.is_running:
            self._node.call(self._node.protocol(Beacon).suggest, name, who, "mdns")


def runs_beacon(node: Node) -> bool:
    """Whether there is a beacon that mDNS could help."""
    return any(isinstance(one.protocol, Beacon) for one in node.driver.host.instances)


def reachable(endpoints: list[str]) -> list[Endpoint]:
    """Those with an address that other machines can use."""
    found = [parse_endpoint(text) for text in endpoints]
    return [
        one
        for one in found
        if one.transport == "tcp" and not is_loopback(one.host) and (_is_address(one.host))
    ]


def texts(name: NodeId, who: Presence, fingerprint: bytes) -> dict[str, str]:
    """What the TXT record tells; as many endpoints as fit into an entry."""
    at = ""
    for endpoint in who.endpoints:
        longer = f"{at},{endpoint}" if at else endpoint
        at = longer if len(longer) < TEXT - 3 else at
    return {
        "name": name,
        "zone": who.zone,
        "vid": f"{vid_of(name):032x}",
        "version": str(who.version),
        "key": fingerprint.hex(),
        "overlay": who.overlay,
        "authority": who.authority.hex(),
        "size": str(who.size),
        "at": at,
    }


def read_texts(properties: dict[bytes, bytes | None]) -> tuple[NodeId, Presence] | None:
    """Who is told there; None when it is not what `texts` writes."""
    told: dict[str, Any] = {}
    try:
        for key, value in properties.items():
            told[key.decode()] = (value or b"").decode()
        name = check_name(told["name"])
        who = {
            "version": int(told["version"]),
            "overlay": told["overlay"],
            "authority": bytes.fromhex(told["authority"]),
            "zone": told["zone"],
            "size": int(told.get("size", "1")),
            "endpoints": [one for one in told["at"].split(",") if one],
        }
        order = Presence.__struct_fields__
        return name, msgspec.convert([who[field] for field in order], Presence)
    except (KeyError, ValueError, OverlayError):  # msgspec's ValidationError is a ValueError
        return None


def service_label(name: NodeId, text: dict[str, str]) -> str:
    """A DNS label that people recognise, and that nodes of other overlays do not share."""
    readable = re.sub(r"[^A-Za-z0-9-]+", "-", name)[:40].strip("-") or "node"
    whole = "/".join((name, text["overlay"], text["authority"]))
    return f"{readable}-{sha256(whole.encode()).hexdigest()[:12]}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _packed(host: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
