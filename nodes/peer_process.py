"""The process of one peer, as `overlay peer` runs it.

It imports nothing that only the command line needs. The first line that it prints is its address
(a JSON object with `--json`); SIGTERM and SIGINT stop it in good order, and a second one is
harmless.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any

import msgspec
import trio

from nodes.control import ControlError, ask, sockets_of
from nodes.event_stream import EventStream
from nodes.facts import event_facts, protocol_of, sentence
from nodes.federation import ZONE_EVENTS
from nodes.folders import runtime_folder
from nodes.node import Node
from nodes.peer import MEMBER_EVENTS, Peer
from nodes.peer_options import PeerOptions, path_or_none
from nodes.settings import NodeConfig, node_config
from nodes.supervisor import Supervisor
from overlay.errors import ConfigError, OverlayError
from overlay.logs import about, configure, speak_for
from overlay.protocol import Event, LinkLost, LinkUp
from protocols.membership import Membership
from protocols.zones import MANAGEMENT

log = logging.getLogger("overlay.node")

MakeNode = Callable[[NodeConfig], Peer]
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
NOT_LOGGED = ("event", "at", "monotonic")  # a line has its own
STOP_SECONDS = 1.8  # then the node is cut off: two seconds after a signal the process is gone


class Pending:
    """Signals that came before the loop could listen to them."""

    def __init__(self) -> None:
        self.seen = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """Be the handler before the loop runs, and again after it: a late signal is harmless."""
        self.seen = True


def run(options: PeerOptions, make: MakeNode | None = None) -> int:
    """Run until stopped, `make` instead of a peer where it is given; the exit code."""
    pending = Pending()
    for number in STOP_SIGNALS:
        signal.signal(number, pending.note)
    try:
        configure(options.log_format, options.log_level)
        speak_for(options.name, options.zone)
        trio.run(_serve, options, pending, make)
    except OverlayError as error:
        log.error("%s", error, extra=about("failed", "node"))
        return 1
    finally:
        # The interpreter gives up handlers in Python while it ends, and the default action would
        # kill it: a signal in those milliseconds must not turn a good stop into a bad one.
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    return 0


def config_of(options: PeerOptions) -> NodeConfig:
    """The node that these options ask for."""
    return node_config(
        options.name,
        zone=options.zone,
        overlay=options.overlay,
        insecure=options.insecure,
        keys=path_or_none(options.keys),
        state=path_or_none(options.state),
        seeds=options.seed,
        profile=options.profile,
        files=options.config,
        sets=(*options.set, *_trace_settings(options), *_sharing(options)),
        bind=options.bind,
        advertise=options.advertise,
    )


def _trace_settings(options: PeerOptions) -> list[str]:
    told = {"level": options.trace, "folder": options.trace_dir}
    return [f"traces.{key}={value}" for key, value in told.items() if value]


def _sharing(options: PeerOptions) -> list[str]:
    return ["resources.share_machine=true"] if options.share_machine else []


async def _serve(options: PeerOptions, pending: Pending, make: MakeNode | None) -> None:
    with trio.open_signal_receiver(*STOP_SIGNALS) as signals:
        config = config_of(options)
        peer = make(config) if make else Supervisor(config) if options.supervisor else Peer(config)
        node = peer.node
        _check_alone(node)
        kinds: tuple[type[Event], ...] = (LinkUp, LinkLost, *MEMBER_EVENTS, *ZONE_EVENTS)
        heard = options.events or log.isEnabledFor(logging.INFO)
        events = node.events(*kinds, where=_concerns_zones) if heard else None
        with trio.CancelScope() as life:
            async with peer, _dashboard(peer, options) as url, trio.open_nursery() as nursery:
                nursery.start_soon(_stop_on_signal, node, signals, life)
                _announce(node, options, url)
                if events is not None:
                    nursery.start_soon(_report_events, events, node, options)
                if pending.seen:
                    node.stop()
                await node.run()
                nursery.cancel_scope.cancel()


def _check_alone(node: Node) -> None:
    """Refuse a second peer of one name: the rest of the overlay could not tell them apart."""
    for path in sockets_of(runtime_folder(), node.name):
        try:
            other = ask(path, "status", timeout=1.0)
        except ControlError:
            continue  # it is just stopping, or stuck: peers will find out
        if other["driver"]["overlay"] == node.overlay:
            raise ConfigError(
                f"{node.name} runs on this machine already (pid {other['pid']}):"
                f" `overlay stop {node.name}`, or choose another --name"
            )


async def _stop_on_signal(node: Node, signals: AsyncIterator[int], life: trio.CancelScope) -> None:
    async for _ in signals:
        life.deadline = min(life.deadline, trio.current_time() + STOP_SECONDS)
        node.stop()


@asynccontextmanager
async def _dashboard(peer: Peer | Supervisor, options: PeerOptions) -> AsyncIterator[str]:
    """Serve a page about this node, if that is asked for; where."""
    if not options.dashboard:
        yield ""
        return
    from nodes.dashboard.server import read_token, serving  # few peers need it

    token = read_token(path_or_none(options.dashboard_token))
    role = serving(options.dashboard, peer=peer, token=token, actions=options.allow_actions)
    async with role as dashboard:
        yield dashboard.url


def _announce(node: Node, options: PeerOptions, url: str = "") -> None:
    status = node.status()
    address = node.endpoints[0]
    if options.json:
        _say(
            {
                "name": node.name,
                "address": address,
                "endpoints": node.endpoints,
                "overlay": status.driver.overlay,
                "zone": status.zone,
                "insecure": status.insecure,
                "pid": os.getpid(),
                "monotonic": time.monotonic(),
            }
            | ({"dashboard": url} if url else {})
        )
    else:
        _say(address)
        if url:
            _say(f"dashboard: {url}")
    if status.insecure:
        log.warning(
            "%s runs INSECURE: whoever reaches %s is believed",
            node.name,
            address,
            extra=about("insecure", "node", address=address),
        )


def _concerns_zones(event: Any) -> bool:
    """Who is in the management zone concerns nobody: what people see of it are zones."""
    return getattr(event, "zone", None) != MANAGEMENT


async def _report_events(events: EventStream[Any], node: Node, options: PeerOptions) -> None:
    """Tell of each link and each member that comes or goes: print it, log it, or both."""
    view = None if options.supervisor else node.protocol(Membership, node.zone).view
    async for event in events:
        facts = event_facts(event, view)
        if options.events:
            _say(facts if options.json else sentence(facts))
        _log_event(event, facts)


def _log_event(event: Event, facts: dict[str, Any]) -> None:
    if log.isEnabledFor(logging.INFO):
        told = {key: value for key, value in facts.items() if key not in NOT_LOGGED}
        about_it = about(facts["event"], protocol_of(event), **told)
        log.info("%s", sentence(facts), extra=about_it)


def _say(line: str | dict[str, object]) -> None:
    text = line if isinstance(line, str) else msgspec.json.encode(line).decode()
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Whoever read our lines went away; the node serves its peers, not its reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
