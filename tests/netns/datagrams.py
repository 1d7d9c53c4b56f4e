"""A program for hosts: send numbered datagrams, or print those that arrive.

    datagrams.py listen ADDRESS PORT INTERFACE    prints `ready`, then `SOURCE NUMBER` for each
    datagrams.py send ADDRESS PORT INTERFACE COUNT

ADDRESS may be a multicast group of IPv4 or IPv6. After the numbers come many `end`s, so that one
arrives whatever the loss.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys

ENDS = 50
RECEIVE_BYTES = 8 << 20  # a burst must not be lost in the socket of a starved process
SO_RCVBUFFORCE = 33  # root may pass the system's limit; the module socket has no name for it


def listen(address: str, port: int, interface: str) -> None:
    """Print what arrives, up to the first `end`."""
    group = ipaddress.ip_address(address)
    family = socket.AF_INET6 if group.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES)
        index = socket.if_nametoindex(interface)
        # A link-local group exists once on each interface.
        receiver.bind(
            (address, port, 0, index)
            if group.version == 6 and group.is_multicast
            else (address, port)
        )
        if group.is_multicast:
            if group.version == 6:
                membership = group.packed + struct.pack("@I", index)
                receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, membership)
            else:
                membership = struct.pack("4s4si", group.packed, bytes(4), index)
                receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        print("ready", flush=True)
        while True:
            data, source = receiver.recvfrom(1024)
            print(source[0], data.decode(), flush=True)
            if data == b"end":
                return


def send(address: str, port: int, interface: str, count: int) -> None:
    """Send the numbers from 0, then the ends."""
    group = ipaddress.ip_address(address)
    family = socket.AF_INET6 if group.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        if group.is_multicast:
            index = socket.if_nametoindex(interface)
            if group.version == 6:
                sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            else:
                choice = struct.pack("4s4si", bytes(4), bytes(4), index)
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, choice)
        for text in [str(number) for number in range(count)] + ["end"] * ENDS:
            sender.sendto(text.encode(), (address, port))


if __name__ == "__main__":
    role, where, number, through, *rest = sys.argv[1:]
    if role == "listen":
        listen(where, int(number), through)
    else:
        send(where, int(number), through, int(rest[0]))
