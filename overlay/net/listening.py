"""The ROUTER of a node: how it is set up, and where it listens."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import zmq

from overlay.errors import ConfigError
from overlay.limits import HEAD_ROOM, Limits
from overlay.net.addresses import Endpoint
from overlay.net.config import NetSettings
from overlay.net.introduction import certificate_path
from overlay.net.trust import Trust
from overlay.net.udp import Datagrams

if TYPE_CHECKING:
    from overlay.net.context import SharedContext

PORT_TRIES = 16  # free tcp ports that are tried for one which is free for datagrams too


def open_router(
    shared: SharedContext, net: NetSettings, limits: Limits, trust: Trust, domain: bytes
) -> zmq.Socket[bytes]:
    """A ROUTER that takes in everything peers send; with CURVE it asks the ZAP desk first."""
    router = shared.context.socket(zmq.ROUTER)
    router.linger = 0
    router.set(zmq.RCVHWM, net.link_frames)
    router.set(zmq.SNDHWM, net.link_frames)
    router.set(zmq.ROUTER_MANDATORY, 1)  # what cannot be sent is an error, not a silent loss
    router.set(zmq.MAXMSGSIZE, limits.frame_bytes + HEAD_ROOM)
    # Who connects sends the pings, and says how long their absence is to be borne. Of one that
    # sends none the kernel finds out whether its machine is still there.
    router.set(zmq.TCP_KEEPALIVE, 1)
    router.set(zmq.TCP_KEEPALIVE_IDLE, int(net.heartbeat * 3) + 1)
    router.set(zmq.TCP_KEEPALIVE_INTVL, int(net.heartbeat) + 1)
    router.set(zmq.TCP_KEEPALIVE_CNT, 3)
    router.set(zmq.TCP_MAXRT, int(net.unacked_within * 1000))
    router.set(zmq.HANDSHAKE_IVL, int(net.connect_within * 1000))  # a silent client is cut off
    if trust.curve is not None:
        router.curve_server = True
        router.curve_publickey, router.curve_secretkey = trust.curve
        router.zap_domain = domain
        router.set(zmq.ZAP_ENFORCE_DOMAIN, 1)
        shared.desk.register(domain, trust.admits)
    return router


def listen(
    router: zmq.Socket[bytes], datagrams: Datagrams, wanted: Endpoint, certificate: bytes
) -> Endpoint:
    """Bind the ROUTER, and datagrams to the same port; returns the endpoint with its port."""
    if wanted.transport == "ipc":
        _bind(router, str(wanted), wanted)
        if certificate:
            certificate_path(wanted).write_bytes(certificate)
        return wanted
    if ":" in wanted.host:
        router.set(zmq.IPV6, 1)
    if wanted.port:
        _bind(router, str(wanted), wanted)
        datagrams.bind(wanted)
        return wanted
    host = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
    for attempt in range(PORT_TRIES):
        _bind(router, f"tcp://{host}:*", wanted)
        last = router.last_endpoint
        assert isinstance(last, bytes)
        text = last.rstrip(b"\0").decode()
        bound = wanted._replace(port=int(text.rpartition(":")[2]))
        if datagrams.bind(bound) or attempt == PORT_TRIES - 1:
            break
        router.unbind(text)  # somebody else's datagrams: introductions would not reach us
    return bound


def _bind(router: zmq.Socket[bytes], text: str, wanted: Endpoint) -> None:
    try:
        router.bind(text)
    except zmq.ZMQError as error:
        hint = (
            "choose another port, or 0 for any free one"
            if error.errno == errno.EADDRINUSE
            else "listen at an address or in a folder of this machine"
        )
        reason = os.strerror(error.errno or 0)
        raise ConfigError(f"net.bind = {str(wanted)!r}: {reason}: {hint}") from None
