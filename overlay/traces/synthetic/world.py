"""Making the rows of a plan, node by node, and counting the answers on the way."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa

from overlay.traces.synthetic.columns import Rows, Words, write
from overlay.traces.synthetic.plan import BEGIN, Answers, Flow, Plan
from overlay.tracing import kinds

PAYLOAD = 100  # bytes of each message
SLOW_BATCH = 5  # of topic 0, which crawls to the last node of its tree
LEG = 10_000  # µs, the other legs of its way
CRAWL = 5_000_000  # µs
FIRST_FAULT = 10  # batch
SUSPICIONS = 3  # of the slandered one
DISCOVERIES = 3  # nodes that looked for a broker
JUMP = 3_600_000_000  # µs
WRITES = 1  # of the seeds of a node, that of its writes
MESSAGES = (
    *(("membership", "Ping"), ("membership", "Ack"), ("membership", "News")),
    *(("topics", "Batch"), ("topics", "Acks"), ("routing", "Step")),
)


def generate(folder: Path, plan: Plan) -> Answers:
    """Write the plan's traces below `folder`; what the jobs must find in them."""
    answers = Answers()
    numbers = range(plan.nodes)
    if plan.processes == 1:
        for number in numbers:
            answers.take(_Node(plan, number).write(folder))
    else:
        # Spawned: a child of a process with a JVM and its threads must not inherit them.
        with ProcessPoolExecutor(plan.processes, mp_context=get_context("spawn")) as pool:
            for part in pool.map(partial(_write_one, folder, plan), numbers):
                answers.take(part)
    names = plan.names
    last = plan.subscribers_of(0)[-1]
    way = [last]
    while way[-1] != plan.publisher(0):
        way.append(plan.parent(0, way[-1]))
    answers.slow_path = [names[number] for number in reversed(way)]
    answers.slow_leg = LEG + CRAWL
    answers.slow_latency = plan.depth(0, last) * LEG + CRAWL
    answers.busy, answers.jumping = names[plan.busy], names[plan.jumping]
    return answers


def _write_one(folder: Path, plan: Plan, number: int) -> Answers:
    return _Node(plan, number).write(folder)


class _Node:
    """The rows of one node; all it needs to know of others follows from the plan."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan = plan
        self._number = number
        self._name = plan.names[number]
        self._rng = np.random.default_rng([plan.seed, number])
        self._words = Words()
        self._rows = Rows(self._words)
        self._answers = Answers()
        self._end = plan.crash_at if number == plan.crashed else BEGIN + plan.seconds * 1_000_000

    def write(self, folder: Path) -> Answers:
        plan, number = self._plan, self._number
        self._live()
        for topic in range(plan.topics):
            if number == plan.publisher(topic):
                self._publish(topic)
            elif number in plan.subscribers_of(topic):
                self._subscribe(topic)
        self._exchange()
        self._notice()
        self._look_up()
        if number < DISCOVERIES:
            self._discover()
            self._find()
        table = self._rows.table(
            node=self._name,
            life=BEGIN,
            zone=plan.zone(number),
            offset=0,
            clock_error=200 + 10 * number,
        )
        if number == plan.jumping:
            table = _with_jump(table)
        self._answers.rows = table.num_rows
        self._answers.files = [
            str(path) for path in write(folder, table, plan.run, self._name, BEGIN)
        ]
        return self._answers

    def _live(self) -> None:
        one = {"protocol": "net", "time": BEGIN + self._number}
        self._rows.add(1, kind=kinds.STARTED.name, detail="synthetic", **one)
        if self._number != self._plan.crashed:
            self._rows.add(1, protocol="net", kind=kinds.STOPPED.name, time=self._end)
        else:
            self._rows.add(1, protocol="sim", kind=kinds.CRASHED.name, time=self._end)

    # -- topics -----------------------------------------------------------------------------------

    def _batches(self, topic: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Time, first number and size of each batch of a topic, the same for everybody."""
        plan = self._plan
        rng = np.random.default_rng([plan.seed, 1_000_000 + topic])
        counts = rng.integers(1, 17, plan.batches)
        firsts = np.cumsum(counts) - counts
        gap = plan.seconds * 900_000 // plan.batches
        times = BEGIN + 1_000_000 + np.arange(plan.batches) * gap
        return times, firsts, counts

    def _flow(self, topic: int) -> dict[str, object]:
        return {
            "protocol": "topics",
            "topic": f"t{topic:02d}/readings",
            "origin": self._plan.names[self._plan.publisher(topic)],
            "stream": topic + 1,
            "detail": "ack",
        }

    def _publish(self, topic: int) -> None:
        times, firsts, counts = self._batches(topic)
        flow = self._flow(topic)
        self._rows.add(
            len(times),
            kind=kinds.PUBLISHED.name,
            time=times,
            first=firsts,
            count=counts,
            bytes=counts * PAYLOAD,
            **flow,
        )
        self._answers.published[str(flow["topic"])] = int(counts.sum())

    def _subscribe(self, topic: int) -> None:
        plan, number = self._plan, self._number
        times, firsts, counts = self._batches(topic)
        depth = plan.depth(topic, number)
        # A lognormal for each hop: p50 rises with the topic's number, so that groups differ.
        took = self._rng.lognormal(np.log(800 + 100 * topic), 0.5, len(times)) * depth
        durations = took.astype(np.int64)
        if topic == 0:
            durations[SLOW_BATCH] = depth * LEG
            if number == plan.subscribers_of(0)[-1]:
                durations[SLOW_BATCH] += CRAWL
        order, answer = self._befall(counts)
        arrived = times + durations
        # As recorded: in the order of delivery, whatever the batch.
        recorded = np.maximum.accumulate(arrived[order])
        flow = self._flow(topic)
        parent = plan.names[plan.parent(topic, number)]
        begin = {"kind": kinds.STREAM_BEGAN.name, "first": 0, "time": BEGIN + 500_000}
        self._rows.add(1, **(flow | begin | {"peer": parent, "detail": None}))
        self._rows.add(
            len(order),
            kind=kinds.DELIVERED.name,
            time=recorded,
            peer=parent,
            first=firsts[order],
            count=counts[order],
            bytes=counts[order] * PAYLOAD,
            hops=depth,
            duration=durations[order],
            **flow,
        )
        self._answers.flows[f"{self._name} {flow['origin']} {flow['topic']}"] = answer

    def _befall(self, counts: np.ndarray) -> tuple[np.ndarray, Flow]:
        """Order in which batches are delivered, with losses, repeats and swaps; and the answer."""
        plan = self._plan
        order = list(range(len(counts)))
        total = int(counts.sum())
        answer = Flow(expected=total, delivered=total)
        room = (len(counts) - FIRST_FAULT - 5) // 4
        places = self._rng.choice(room, min(3 * plan.faults, room), replace=False) * 4 + FIRST_FAULT
        changes: dict[int, list[int]] = {}
        for turn, place in enumerate(places.tolist()):
            size = int(counts[place])
            if turn % 3 == 0:
                changes[place] = []
                answer.lost += size
                answer.delivered -= size
            elif turn % 3 == 1:
                changes[place] = [place, place]
                answer.duplicated += size
                answer.delivered += size
            else:
                changes[place] = [place + 1, place]
                changes[place + 1] = []
                answer.out_of_order += size
        if changes:
            order = [one for place in order for one in changes.get(place, [place])]
        return np.array(order), answer

    # -- everything else --------------------------------------------------------------------------

    def _exchange(self) -> None:
        plan, rng = self._plan, self._rng
        others = self._words.codes([name for name in plan.names if name != self._name])
        protocols = self._words.codes([protocol for protocol, _ in MESSAGES])
        types = self._words.codes([message for _, message in MESSAGES])
        for kind, factor, into in (
            (kinds.SENT.name, 10 if self._number == plan.busy else 1, self._answers.sent),
            (kinds.RECEIVED.name, 1, self._answers.received),
        ):
            size = plan.exchanges
            which = rng.integers(0, len(MESSAGES), size)
            counts = rng.integers(1, 9, size)
            sizes = counts * rng.integers(40, 400, size) * factor
            self._rows.add(
                size,
                kind=kind,
                time=np.sort(rng.integers(BEGIN + 1_000_000, self._end, size)),
                protocol=protocols[which],
                message=types[which],
                peer=others[rng.integers(0, len(others), size)],
                count=counts,
                bytes=sizes,
            )
            into[self._name] = [int(counts.sum()), int(sizes.sum())]

    def _notice(self) -> None:
        """Everybody joins, one dies, and one is slandered."""
        plan, number = self._plan, self._number
        zone = plan.zone(number)
        mates = [one for one in range(plan.nodes) if one != number and plan.zone(one) == zone]
        about = {"protocol": "membership", "scope": zone}
        for place, mate in enumerate(mates):
            at = BEGIN + 100_000 + 1_000 * place
            joined = {"kind": kinds.MEMBER_JOINED.name, "peer": plan.names[mate], "time": at}
            self._rows.add(1, **about, **joined)
            view = {"kind": kinds.VIEW_CHANGED.name, "count": place + 2, "time": at}
            self._rows.add(1, **about, **view, key=f"{zone}-{place + 2}of{len(mates) + 1}")
        if plan.crashed in mates:
            at = plan.crash_at + 300_000 + 1_000 * number
            failed = {"kind": kinds.MEMBER_FAILED.name, "peer": plan.names[plan.crashed]}
            self._rows.add(1, **about, **failed, time=at)
            view = {"kind": kinds.VIEW_CHANGED.name, "count": len(mates), "time": at}
            self._rows.add(1, **about, **view, key=f"{zone}-without-the-dead")
            self._answers.detected[self._name] = [(at - plan.crash_at) / 1e6]
        if plan.slandered in mates:
            for turn in range(SUSPICIONS):
                at = BEGIN + plan.seconds * 250_000 + 1_000_000 * turn
                peer = {"peer": plan.names[plan.slandered]}
                self._rows.add(1, **about, **peer, kind=kinds.MEMBER_SUSPECTED.name, time=at)
                refuted = {"kind": kinds.MEMBER_REFUTED.name, "time": at + 40_000}
                self._rows.add(1, **about, **peer, **refuted)
            self._answers.suspected_wrongly[self._name] = SUSPICIONS

    def _look_up(self) -> None:
        plan, rng = self._plan, self._rng
        size = plan.lookups
        about = {"protocol": "dht", "kind": kinds.DHT_DONE.name, "origin": self._name}
        for operation, share in (("get found", 0.7), ("put stored", 0.25), ("get timeout", 0.05)):
            many = int(size * share) + 1
            self._rows.add(
                many,
                **about,
                detail=operation,
                time=np.sort(rng.integers(BEGIN + 1_000_000, self._end, many)),
                hops=rng.integers(1, 5, many),
                stream=np.arange(many),
                duration=rng.lognormal(np.log(3_000), 0.4, many).astype(np.int64),
            )
            self._answers.lookups[f"{self._name} {operation}"] = many
        self._store()
        keys = 1_000 + 10 * self._number
        loads = {"protocol": "dht", "kind": kinds.DHT_LOAD.name, "detail": "owner"}
        for turn, held in enumerate((keys // 2, keys)):
            at = BEGIN + 5_000_000 * (turn + 1)
            self._rows.add(1, **loads, count=held, bytes=100 * held, time=at)
        self._answers.keys[self._name] = keys

    def _store(self) -> None:
        """Writes of this node, and copies of those of the node before it, each once."""
        plan, number = self._plan, self._number
        before = (number - 1) % plan.nodes
        for owner, role in ((number, "owner"), (before, "replica")):
            times, lags = self._writes(owner)
            self._rows.add(
                plan.writes,
                protocol="dht",
                kind=kinds.DHT_STORED.name,
                detail=role,
                key=f"{owner:08x}",
                stream=1,
                value=np.arange(plan.writes, dtype=np.float64),
                time=times + (lags if role == "replica" else 0),
            )
        self._answers.lags[self._name] = [int(lags.min()), int(lags.max()), int(lags.sum())]

    def _writes(self, owner: int) -> tuple[np.ndarray, np.ndarray]:
        """When a node stored its writes, and how much later the next one did; known to both."""
        plan = self._plan
        rng = np.random.default_rng([plan.seed, owner, WRITES])
        times = np.sort(rng.integers(BEGIN + 1_000_000, plan.crash_at - 1_000_000, plan.writes))
        return times, rng.lognormal(np.log(900), 0.3, plan.writes).astype(np.int64)

    def _discover(self) -> None:
        begin = BEGIN + 2_000_000
        total, waiting = 90_000 + 1_000 * self._number, 70_000
        request = {"protocol": "discovery", "origin": self._name, "stream": 1}
        self._rows.add(1, **request, kind=kinds.DISCOVERY_BEGAN.name, time=begin)
        for place in range(3):
            after = 20_000 * (place + 1)
            answer = {"kind": kinds.DISCOVERY_RESPONSE.name, "peer": f"broker{place}"}
            self._rows.add(1, **request, **answer, duration=after, time=begin + after)
        for phase, took in (("waiting", waiting), ("choosing", 500), ("pinging", total - 70_500)):
            part = {"kind": kinds.DISCOVERY_PHASE.name, "detail": phase, "duration": took}
            self._rows.add(1, **request, **part, time=begin + total)
        chosen = {"kind": kinds.DISCOVERY_CHOSEN.name, "peer": "broker1", "count": 3}
        self._rows.add(1, **request, **chosen, duration=total, value=0.012, time=begin + total)
        self._answers.discoveries[self._name] = [total / 1000, waiting / 1000]

    def _find(self) -> None:
        """One request for resources, which two brokers hand on, and which finds three."""
        begin, total = BEGIN + 3_000_000, 4_000 + 100 * self._number
        request = {"protocol": "resources", "origin": self._name, "stream": 7}
        asked = {"kind": kinds.RESOURCE_REQUESTED.name, "detail": "similarity"}
        self._rows.add(1, **request, **asked, time=begin)
        for place, way in enumerate(("routed", "covered")):
            handled = {"kind": kinds.RESOURCE_HANDLED.name, "detail": way, "hops": place + 1}
            self._rows.add(1, **request, **handled, time=begin + 1_000)
        answered = {"kind": kinds.RESOURCE_ANSWERED.name, "count": 3, "hops": 1}
        self._rows.add(1, **request, **answered, time=begin + 2_000)
        done = {"kind": kinds.RESOURCE_DONE.name, "detail": "all answered", "value": 3.0}
        self._rows.add(1, **request, **done, duration=total, hops=2, time=begin + total)
        self._answers.finds[self._name] = total / 1000


def _with_jump(table: pa.Table) -> pa.Table:
    """The clock of the machine is set in the middle of the run; overlay time makes up for it."""
    half = table.num_rows // 2
    offsets = np.zeros(table.num_rows, dtype=np.int64)
    offsets[half:] = JUMP
    place = table.schema.get_field_index("offset")
    return table.set_column(place, "offset", pa.array(offsets))
