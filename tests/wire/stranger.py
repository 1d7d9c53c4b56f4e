"""A peer by a stranger: written from docs/wire.md, with pyzmq and msgpack, and nothing of ours.

    python stranger.py NAME ZONE BIND SEED [--overlay O] [--subscribe T] [--publish T --count N]

It joins a zone, answers probes, watches its ring successor, reconciles views, subscribes and
publishes in ack mode. It prints what happens as lines of JSON, and leaves at the end of its stdin.
"""

import argparse
import json
import os
import random
import sys
import time
from base64 import urlsafe_b64encode
from functools import partial, reduce
from hashlib import blake2b, sha256

import msgpack
import zmq

HELLO, WELCOME, REFUSAL, GOODBYE, MARK = 3, 4, 5, 8, 9
PING, ACK, PING_REQUEST, INDIRECT_ACK, GOSSIP, JOIN, JOIN_REPLY, JOIN_REFUSED = range(32, 40)
SYNC, SYNC_SUMMARY, SYNC_RECORDS = range(40, 43)
LINK_REQUEST, LINK_ACCEPT, LINK_CHECK = 48, 49, 52
OFFER, ACCEPT, REJECT, BEGIN, DATA, RECEIVED, LEAVE, REPAIR = 112, 113, 114, 115, 116, 118, 121, 125

FRAMEWORK, NODE = "#", ""  # scopes; the third one is the name of the zone
ALIVE, SUSPECT, DEAD, LEFT = range(4)
ACK_MODE = 2
ASK, LAST, BARE = 1, 2, 16  # flags of DATA
BUCKETS = 64


pack = msgpack.packb
unpack = partial(msgpack.unpackb, strict_map_key=False)


def key_of(text: str) -> int:
    """Where a text falls on the ring."""
    return int.from_bytes(sha256(text.encode()).digest()[:16], "big")


def fingerprint(*parts: object) -> int:
    text = "\0".join(map(str, parts)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") & (1 << 63) - 1


def word_of(topic: str) -> str:
    """A topic in the attribute `topics`."""
    packed = (key_of("topic:" + topic) >> 64).to_bytes(8, "big")
    return urlsafe_b64encode(packed).decode().rstrip("=")


def xor(numbers):
    return reduce(int.__xor__, numbers, 0)


def tell(event, **more):
    print(json.dumps({"event": event, **more}, default=bytes.hex), flush=True)


class Connections:
    """A ROUTER that others connect to, and a DEALER for each peer that we connect to."""

    def __init__(self, name, overlay, bind):
        self.context = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.bind(bind)
        self.endpoint = self.router.getsockopt_string(zmq.LAST_ENDPOINT)
        self.poller = zmq.Poller()
        self.poller.register(self.router, zmq.POLLIN)
        life = os.urandom(8)
        self.hello = [HELLO, 1, 1, overlay, name, life, [self.endpoint], b""]
        self.welcome = pack([WELCOME, 1, name, life, b""])
        self.names = {}  # (socket, routing id) -> who is at the other end
        self.routes = {}  # name -> (socket, routing id); None: we are connecting
        self.waiting = {}  # name -> frames until then

    def connect(self, endpoint):
        dealer = self.context.socket(zmq.DEALER)
        dealer.connect(endpoint)
        dealer.send(pack(self.hello))
        self.poller.register(dealer, zmq.POLLIN)

    def put(self, route, data):
        route[0].send_multipart([route[1], data] if route[1] else [data])

    def send(self, name, endpoints, scope, *message):
        frame = pack([1, time.time(), [[scope, [message]]], []])
        if name not in self.routes and endpoints:
            self.routes[name] = None
            self.connect(endpoints[0])
        if self.routes.get(name):
            self.put(self.routes[name], frame)
        else:
            self.waiting.setdefault(name, []).append(frame)

    def reached(self, name, route):
        self.names[route] = name
        self.routes[name] = route
        for frame in self.waiting.pop(name, []):
            self.put(route, frame)

    def receive(self, sockets):
        """Yield (name, scope, message) of all that arrived."""
        for socket in sockets:
            while socket.get(zmq.EVENTS) & zmq.POLLIN:
                parts = socket.recv_multipart()
                caller = parts.pop(0) if socket is self.router else b""
                yield from self.read((socket, caller), unpack(parts[0]), parts[1:])

    def read(self, route, head, payloads):
        """Hello, Welcome and Refusal come bare; everything after them in frames."""
        if head[0] == HELLO and route not in self.names:
            self.put(route, self.welcome)
            self.reached(head[4], route)
        elif head[0] == WELCOME and len(head) == 5:
            self.reached(head[2], route)
            yield head[2], FRAMEWORK, head
        elif head[0] == REFUSAL and len(head) == 3:
            sys.exit(f"refused: {head[1]}: {head[2]}")
        elif len(head) == 4:
            name, (_, _, sections, attached) = self.names[route], head
            told = [(scope, message) for scope, messages in sections for message in messages]
            for place, payload in zip(attached, payloads, strict=True):  # beside the head
                message = told[place][1]
                message[message.index(b"")] = payload
            for scope, message in told:
                if scope != FRAMEWORK:
                    yield name, scope, message
                elif message[0] == MARK:  # goes back by the same way, bare
                    self.put(route, pack(message))
                elif message[0] == GOODBYE and self.routes.get(name) == route:
                    del self.routes[name]


class Member:
    """The membership of a zone. A record is [name, incarnation, state, life, born, endpoints,
    accusers, abrupt], an attribute [name, key, version, value]."""

    def __init__(self, name, zone, net):
        self.name, self.zone, self.net = name, zone, net
        self.life = random.getrandbits(63)
        self.born = self.incarnation = int(time.time() * 1000)
        self.records, self.attributes = {}, {name: {}}
        self.joined, self.synced_at = False, 0.0
        self.asked = None  # whose Ack is awaited
        self.put_myself()

    def put_myself(self):
        mine = [self.incarnation, ALIVE, self.life, self.born, [self.net.endpoint], [], False]
        self.records[self.name] = [self.name, *mine]

    def present(self):
        return [name for name, record in self.records.items() if record[2] <= SUSPECT]

    def held(self, names):
        return [one for name in names for one in self.attributes.get(name, {}).values()]

    def send(self, name, scope, *message):
        self.net.send(name, self.records.get(name, [None] * 6)[5], scope, *message)

    def say(self, name, *message):
        self.send(name, self.zone, *message)

    def gossip(self, record, first=()):
        others = [name for name in self.present() if name != self.name]
        for name in (*first, *random.sample(others, min(4, len(others)))):
            self.say(name, GOSSIP, [record], [])

    def attribute_digest(self, name):
        return xor(fingerprint(*attribute[:3]) for attribute in self.held([name]))

    def buckets(self):
        found = [0] * BUCKETS
        for name in self.present():
            mark = fingerprint(name, self.records[name][1], self.records[name][3])
            found[key_of(name) % BUCKETS] ^= mark ^ self.attribute_digest(name)
        return found

    def compare(self, name, digest):
        """Reconcile with who has another view."""
        if digest != xor(self.buckets()) and time.monotonic() - self.synced_at > 0.5:
            self.synced_at = time.monotonic()
            packed = b"".join(bucket.to_bytes(8, "big") for bucket in self.buckets())
            self.say(name, SYNC, 1, packed)

    def learn(self, news, attributes=()):
        for claim in news:
            record = claim + [[], [], False][len(claim) - 5 :]
            name, incarnation, state, life = record[:4]
            known = self.records.get(name)
            if name == self.name:
                if life == self.life and state != ALIVE and incarnation >= self.incarnation:
                    self.incarnation = incarnation + 1  # I am here
                    self.put_myself()
                    self.gossip(self.records[name], record[6])
            elif known is None or (incarnation, state) > (known[1], known[2]):
                if known and known[3] != life:
                    self.attributes.pop(name, None)
                self.records[name] = record
                if (state <= SUSPECT) != bool(known and known[2] <= SUSPECT):
                    tell("member" if state <= SUSPECT else "gone", name=name)
        for name, key, version, *value in attributes:
            held = self.attributes.setdefault(name, {})
            if name != self.name and (key not in held or version > held[key][2]):
                held[key] = [name, key, version, value[0] if value else None]

    def answer(self, src, sequence, names, wanted=()):
        if names:
            news = [self.records[name] for name in names]
            self.say(src, SYNC_RECORDS, sequence, news, self.held(names), wanted)

    def handle(self, src, message):
        tag, *fields = message
        if tag == WELCOME and not self.joined:
            _, incarnation, _, life, born, endpoints, *_ = self.records[self.name]
            self.say(src, JOIN, life, born, incarnation, endpoints, self.held([self.name]))
        elif tag == PING:
            self.learn(*fields[2:4])
            self.say(src, ACK, fields[0], self.life, xor(self.buckets()), [], [])
            self.compare(src, fields[1])
        elif tag == ACK:
            self.asked = None if self.asked == src else self.asked
            self.learn(*fields[3:5])
            self.compare(src, fields[2])
        elif tag == PING_REQUEST:  # for others it asks nobody, but it is here
            reached = fields[1] == self.name
            self.say(src, INDIRECT_ACK, fields[0], reached, self.life if reached else 0)
        elif tag == GOSSIP:
            self.learn(*fields[:2])
        elif tag == JOIN_REPLY and fields[0] == self.life:
            self.learn(*fields[4:6])
            if not self.joined:
                self.joined = True
                tell("joined", by=src)
        elif tag == JOIN_REFUSED:
            sys.exit(f"refused: {fields[1]}")
        elif tag == SYNC:
            packed = [bucket.to_bytes(8, "big") for bucket in self.buckets()]
            theirs = [fields[1][at : at + 8] for at in range(0, 8 * BUCKETS, 8)]
            differ = [at for at in range(BUCKETS) if packed[at] != theirs[at]]
            known = [one for one in self.records.values() if key_of(one[0]) % BUCKETS in differ]
            summary = [[*one[:2], one[3], one[2], self.attribute_digest(one[0])] for one in known]
            self.say(src, SYNC_SUMMARY, fields[0], differ, summary)
        elif tag == SYNC_SUMMARY:  # tell about myself, and ask for all that differs
            self.answer(src, fields[0], [self.name], [one[0] for one in fields[2]])
        elif tag == SYNC_RECORDS:
            self.learn(*fields[1:3])
            self.answer(src, fields[0], [name for name in fields[3] if name in self.records])
        elif tag in (LINK_REQUEST, LINK_CHECK):  # of the topology: agreed, without a wish of ours
            self.say(src, LINK_ACCEPT if tag == LINK_REQUEST else LINK_CHECK, 0)

    def each_second(self):
        """Accuse the successor on the ring if it did not answer, and ask again who that is."""
        record = self.records.get(self.asked)
        if record and record[2] == ALIVE and self.asked != self.name:
            self.learn([[*record[:2], SUSPECT, *record[3:6], [self.name], False]])
            self.gossip(self.records[self.asked])
        ring = sorted(self.present(), key=key_of)
        self.asked = ring[(ring.index(self.name) + 1) % len(ring)]
        if self.asked != self.name:
            self.say(self.asked, PING, 1, xor(self.buckets()), [], [])


class Subscriber:
    """The streams of one topic in ack mode, each in order and every message once."""

    def __init__(self, topic, member):
        self.topic, self.member = topic, member
        self.streams = {}  # (origin, stream) -> {receiver, expected, early}

    def handle(self, src, tag, origin, stream, *rest):
        one = self.streams.get((origin, stream))
        if tag == OFFER:
            topic, mode = rest[:2]
            if topic != self.topic or mode != ACK_MODE:
                self.member.send(src, NODE, REJECT, origin, stream, "no interest", False)
                return
            new = {"receiver": random.getrandbits(48), "expected": 0, "early": {}}
            one = self.streams.setdefault((origin, stream), new)
            answer = (one["receiver"], max(0, one["expected"] - 1), 0, 0.0, False)
            self.member.send(src, NODE, ACCEPT, origin, stream, *answer)
        elif tag == BEGIN and one:
            one["expected"] = max(one["expected"], rest[0])
        elif tag in (DATA, REPAIR) and one:
            _, _, first, count, _, _, flags, payload = rest[:8]
            newest, early = first + count - 1, one["early"]
            if count:
                early[first] = [payload] if flags & BARE else unpack(payload)
            while one["expected"] in early:
                for data in early.pop(one["expected"]):
                    tell("message", publisher=origin, sequence=one["expected"], data=data)
                    one["expected"] += 1
            upto = one["expected"] - 1
            one["early"] = early = {at: data for at, data in early.items() if at > upto}
            gaps = [[upto + 1, min(early, default=newest + 1) - 1]] if upto < newest else []
            answer = (one["receiver"], upto, gaps, False)
            self.member.send(src, NODE, RECEIVED, origin, stream, *answer)
            if flags & LAST and upto >= newest:
                self.member.send(src, NODE, LEAVE, origin, stream, False, False)


class Publisher:
    """One stream in ack mode; a real one forgets what everybody has, and bounds what is sent."""

    def __init__(self, topic, count, member):
        self.topic, self.count, self.member = topic, count, member
        self.stream = random.getrandbits(48)
        self.history, self.told = [], False  # message n is at n - 1
        self.receivers = {}  # name -> {receiver, first, acked}

    def send(self, name, number, flags=0):
        """A message; or, with a number past the last one, only how far the stream is."""
        payload = self.history[number - 1] if number <= len(self.history) else b""
        data = (self.member.name, self.stream, self.topic, ACK_MODE, number, int(bool(payload)))
        self.member.send(name, NODE, DATA, *data, 1, time.time(), flags, payload)

    def each_tenth(self):
        """Offer it to who is interested, publish to who accepted, ask who did not acknowledge."""
        newest, me = len(self.history), self.member.name
        for name in self.member.present():
            topics = self.member.attributes.get(name, {}).get("topics", [""])[-1] or ""
            if name != me and name not in self.receivers and word_of(self.topic) in topics:
                self.receivers[name] = {"receiver": None, "first": newest + 1, "acked": 0}
        accepted = [one for one in self.receivers.items() if one[1]["receiver"] is not None]
        for name, one in self.receivers.items():
            if one["receiver"] is None:
                offer = (self.topic, ACK_MODE, one["first"], newest, 1 << 20, 0, False)
                self.member.send(name, NODE, OFFER, me, self.stream, *offer)
            elif one["acked"] < newest:
                self.send(name, newest + 1, ASK)
        if accepted and newest < self.count:
            self.history = [pack([{"number": at + 1}]) for at in range(self.count)]
            for name, _ in accepted:
                self.send_all(name, newest + 1, self.count)
        elif accepted and not self.told and all(one["acked"] >= newest for _, one in accepted):
            self.told = True
            tell("acknowledged", count=newest)

    def send_all(self, name, first, last):
        for number in range(first, last + 1):
            self.send(name, number)

    def handle(self, src, tag, origin, stream, *rest):
        one = self.receivers.get(src)
        if (origin, stream) != (self.member.name, self.stream) or one is None:
            return
        if tag == ACCEPT:
            if one["receiver"] != rest[0]:
                one.update(receiver=rest[0], acked=one["first"] - 1)
            self.member.send(src, NODE, BEGIN, origin, stream, one["first"], False)
            self.send_all(src, one["acked"] + 1, len(self.history))
        elif tag == RECEIVED and rest[0] == one["receiver"]:
            one["acked"] = max(one["acked"], rest[1])
            for first, last in rest[2]:
                self.send_all(src, first, last)
        elif tag in (LEAVE, REJECT):
            del self.receivers[src]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for word in ("name", "zone", "bind", "seed"):
        parser.add_argument(word)
    for option, default in (("overlay", "overlay"), ("subscribe", ""), ("publish", "")):
        parser.add_argument(f"--{option}", default=default)
    parser.add_argument("--count", type=int, default=0)
    options = parser.parse_args()
    net = Connections(options.name, options.overlay, options.bind)
    member = Member(options.name, options.zone, net)
    if options.subscribe:
        interest = [options.name, "topics", member.born << 20, word_of(options.subscribe)]
        member.attributes[options.name]["topics"] = interest
    subscriber = Subscriber(options.subscribe, member)
    publisher = Publisher(options.publish, options.count, member)
    begun, ticks, stdin = time.monotonic(), 0, sys.stdin.fileno()
    net.poller.register(stdin, zmq.POLLIN)
    net.connect(options.seed)
    while stdin not in (ready := dict(net.poller.poll(50))):
        for src, scope, message in net.receive(ready):
            if scope in (FRAMEWORK, options.zone):
                member.handle(src, message)
            elif scope == NODE and OFFER <= message[0] <= REPAIR and len(message) > 2:
                for one in (subscriber, publisher):
                    one.handle(src, *message)
        if member.joined and time.monotonic() - begun >= ticks / 10:
            ticks += 1
            publisher.each_tenth()
            if ticks % 10 == 0:
                member.each_second()
    mine = member.records[member.name]
    member.gossip([*mine[:2], LEFT, *mine[3:]])
    net.context.destroy(linger=500)


if __name__ == "__main__":
    main()
