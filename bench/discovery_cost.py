"""What discovery costs: messages among a thousand brokers, a BDN's CPU time, and signatures."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec

from bench.progress import Progress
from bench.report import Options, Report
from nodes.scenarios.discovery_world import BDN, Client, bdn, broker
from overlay.host import Surroundings
from overlay.net.driver import Driver
from overlay.protocol import Origin, UdpAddress
from overlay.security.authority import Authority
from overlay.security.credentials import Credentials
from overlay.security.datagram import DatagramSettings, DatagramSigner, DatagramVerifier
from overlay.security.rights import Rights
from overlay.sim import SimStage, Simulator
from protocols.discovery import Bdn, BdnSettings, Broker, BrokerSettings, DiscoverySettings
from protocols.discovery.messages import (
    PADDED_TO,
    Advertisement,
    Request,
    RequestAck,
    Response,
    Usage,
)

BROKERS = 1000
HELD = 10_000  # advertisements
REQUESTS = 4000
CLIENTS = 50  # that ask the BDN in turn


def report_scale(report: Report, options: Options) -> None:
    """A request among a thousand brokers, and a BDN with ten thousand."""
    size = 40 if options.quick else BROKERS
    progress = Progress("discovery, scale", 4)
    for shape in ("tree", "unconnected", "line"):
        progress.step(f"{size} brokers, {shape}")
        _request_among(report, size, shape)
    progress.step("a BDN")
    _busy_bdn(report, 200 if options.quick else HELD, 100 if options.quick else REQUESTS)


def _request_among(report: Report, size: int, shape: str) -> None:
    sim = Simulator(1, check_every=0)
    stage = SimStage(sim, nodes=size)
    stage.start("bdn", bdn(BdnSettings(source_rate=1e6, total_rate=1e6)))
    names = [f"b{index}" for index in range(size)]
    for index, name in enumerate(names):
        before = {"tree": (index - 1) // 4, "line": index - 1}.get(shape)
        links = () if before is None or not index else (names[before],)
        # No greetings while the request is counted.
        stage.start(name, broker(BrokerSettings(bdns=(BDN,), links=links, link_lease=3600.0)))
    client = Client(stage, "client", DiscoverySettings(bdns=(BDN,)))
    machine = stage.protocol("bdn", Bdn)
    assert sim.run_until(lambda: len(machine.brokers()) == size, 120)
    sim.run_for(1.0)
    probes = machine.counts.probes
    before = sim.traffic.messages
    wait = client.discover()
    assert sim.run_until(wait.condition, 4.01, every=0.001)
    found = client.found
    sim.run_for(3.0)  # the request still travels after the choice
    spent = sim.traffic.messages - before - 2 * (machine.counts.probes - probes)
    answered = sum(stage.protocol(name, Broker).counts.answered for name in names)
    label = f"{size} brokers, {shape}"
    report.add(f"{label}: messages per request", "messages", [spent])
    report.add(f"{label}: brokers that answered", "brokers", [answered])
    report.add(f"{label}: responses considered", "responses", [found.responses])
    report.add(f"{label}: total time", "ms", [1000 * found.phases.total])
    report.require(f"{label}: reached", 100 * answered / size, "%", "at least", 100)


def _busy_bdn(report: Report, held: int, requests: int) -> None:
    """CPU time of all that a BDN does for a request: opening, judging, injecting, sealing, sending.

    The link queues take what is injected; writing it to sockets is not in the figure.
    """
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority.create(Path(folder), "bench")
        driver = Driver(
            "bdn",
            overlay="bench",
            credentials=authority.issue("bdn", Rights(roles=("bdn",)), 1),
        )
        driver.host.surroundings = Surroundings()
        config = BdnSettings(capacity=held, source_rate=1e6, total_rate=1e6)
        machine = driver.host.add(Bdn, config)
        driver._learn_messages()
        driver.host.start(driver.now(), lambda _instance: {})
        began = time.process_time()
        handle = machine.datagram_handlers()[Advertisement]
        for index in range(held):
            name = f"b{index}"
            links = (f"b{(index - 1) // 4}",) if index else ()
            origin = Origin(UdpAddress(f"127.1.{index // 250}.{index % 250}", 7400), name, 0.0)
            handle(origin, Advertisement(name, 1, 600.0, links=links), driver.now())
        taken = time.process_time() - began
        report.add("a BDN stores an advertisement", "µs CPU", [1e6 * taken / held])
        clients = [authority.issue(f"client{index}", Rights(), 1) for index in range(CLIENTS)]
        spent = _ask(driver, clients, requests)
        assert machine.counts.accepted == requests, machine.counts
        rate = requests / spent
        report.add(f"a BDN with {held} brokers answers", "requests/s of CPU", [rate])
        report.require("a BDN answers on one core", rate, "requests/s", "at least", 2000)
        report.require("a BDN holds", len(machine.brokers()), "brokers", "at least", held)


def _ask(driver: Driver, clients: list[Credentials], requests: int) -> float:
    """Let clients prove their addresses and ask; the CPU seconds of the second part."""
    rng = Random(1)
    cookies: dict[str, bytes] = {}
    machine = driver.host.protocol(Bdn)
    places = {
        one.identity.name: UdpAddress("127.0.0.1", 40_000 + i) for i, one in enumerate(clients)
    }
    for name, address in places.items():
        cookies[name] = machine._cookies.make(name, address, driver.now())
    signers = {one.identity.name: DatagramSigner(one) for one in clients}
    letters = []
    for index in range(requests):
        name = clients[index % len(clients)].identity.name
        request = Request(rng.randbytes(16), cookie=cookies[name], padding=bytes(560))
        body = msgspec.msgpack.encode((1, "", request))
        signed = signers[name].sign(body, time.time(), with_certificate=True)
        letters.append((signed, places[name]))
    began = time.process_time()
    for data, address in letters:
        driver._envelopes.received(data, address, "")
    return time.process_time() - began


def report_security(report: Report, options: Options) -> None:
    """Certificates, signatures and seals, in µs of CPU (figures 13 and 14)."""
    times = 20 if options.quick else 500
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority.create(Path(folder), "bench")
        ada, bob = (authority.issue(name, Rights(), 1) for name in ("ada", "bob"))
    repeats = [_validating(ada, bob, times) for _ in range(options.repeats)]
    report.add("validating a certificate (figure 13)", "µs CPU", repeats)
    request = Request(bytes(16), padding=bytes(PADDED_TO - 60))
    response = Response(bytes(16), 0, 1e9, Usage(10, 3, 0.5, 1 << 34, 1 << 33), ("tcp://b:7400",))
    ack = RequestAck(bytes(16), 0, "accepted", total=2, injected=bytes(8))
    for what, message in (("request", request), ("response", response), ("RequestAck", ack)):
        body = msgspec.msgpack.encode((1, "", message))
        signing, opening = _both_ends(ada, bob, body, times, options.repeats)
        report.add(f"sign and seal a {what} (figure 14)", "µs CPU", signing)
        report.add(f"open and verify a {what} (figure 14)", "µs CPU", opening)
        both = min(signing) + min(opening)
        report.require(f"{what}: both ends", both, "µs CPU", "at most", 1000)


def _validating(ada: Credentials, bob: Credentials, times: int) -> float:
    """A verifier remembers whom it believed, so each validation needs one that has seen nobody."""
    fresh = iter([bob.verifier() for _ in range(times)])
    now = time.time()
    return _each(times, lambda: next(fresh).verify(ada.certificate, now))


def _both_ends(
    ada: Credentials, bob: Credentials, body: bytes, times: int, repeats: int
) -> tuple[list[float], list[float]]:
    signer = DatagramSigner(ada)
    settings = DatagramSettings(window=10 * times)
    opener = DatagramVerifier(bob.verifier(), settings, curve_secret=bob.curve_secret)
    signing, opening = [], []
    for _ in range(repeats):
        letters: list[bytes] = []

        def sign(into: list[bytes] = letters) -> None:
            into.append(
                signer.sign(body, time.time(), with_certificate=True, seal_for=bob.identity)
            )

        signing.append(_each(times, sign))
        waiting = iter(letters)
        opening.append(_each(times, lambda: opener.open(next(waiting), time.time())))  # noqa: B023
    return signing, opening


def _each(times: int, action: Callable[[], object]) -> float:
    """µs of CPU time that one takes."""
    began = time.process_time()
    for _ in range(times):
        action()
    return 1e6 * (time.process_time() - began) / times
