"""How frames and datagrams travel between simulated nodes, and what their drivers notice."""

from __future__ import annotations

from math import inf
from random import Random
from typing import TYPE_CHECKING

import msgspec

from overlay.ids import NodeId
from overlay.protocol import Group, LinkLost, LinkUp, Message, Origin, Scope, UdpAddress
from overlay.sim.agenda import Entry
from overlay.sim.codec import WireCheck
from overlay.sim.faults import Copy, Passage, Rule, Slow
from overlay.sim.node import Link, Sections, SimNode
from overlay.sim.tracing import SimTraces
from overlay.tracing import Level
from overlay.tracing.kinds import CAST, HEARD, RECEIVED, SENT

if TYPE_CHECKING:
    from overlay.sim.simulator import Simulator

UDP_PORT = 7400  # every simulated node has one address: (its name, this port)
encoded = msgspec.msgpack.Encoder().encode


class Traffic:
    """Turns what nodes send in a tick into arrivals on the agenda."""

    def __init__(self, sim: Simulator) -> None:
        model = sim.network
        self._sim = sim
        self._next = sim.agenda.next_sequence
        self._push = sim.agenda.push
        self._rng = Random(f"{sim.seed}/faults")
        latency = Random(f"{sim.seed}/latency")
        self._near = model.latency.sampler(latency)
        self._far = model.between_lans.sampler(latency) if model.between_lans else None
        self._deliver = self._on_frame  # bound once: each entry holds a reference to it
        self._weigh = model.weigh or _encoded_size
        self._wire = WireCheck() if sim.wire else None
        self._shaped = model.bandwidth is not None or model.strict_contacts or self._far is not None
        self._write = sim.hash.write  # inlined for frames: a call per step is what costs here
        self._trace = sim.hash.buffer
        self.frames = 0
        self.messages = 0

    # -- leaving ----------------------------------------------------------------------------------

    def flush(self, node: SimNode) -> None:
        """Send what a node wrote in this tick: one frame for each lane to each peer."""
        if self._sim.traces is not None:
            self._trace_leaving(node, self._sim.traces)
        outbox = node.outbox
        if outbox:
            sim = self._sim
            links = node.links
            rules = sim.faults.rules
            for peer, sections in outbox.items():
                link = links.get(peer) or self._open(node, peer)
                if link is None:
                    continue
                if self._shaped:
                    self._send_shaped(link, sections)
                    continue
                at = sim.now + self._near()
                for rule in rules.values():
                    if rule.touches(node.name, peer, sim.now, datagram=False):
                        self._send_bent(link, sections, at)
                        break
                else:
                    if at < link.arrives:
                        at = link.arrives
                    else:
                        link.arrives = at
                    self._push((at, self._next(), self._deliver, link, sections))
            outbox.clear()
        if node.bulk_outbox:
            for peer, sections in node.bulk_outbox.items():
                link = node.links.get(peer) or self._open(node, peer)
                if link is not None:
                    self._send_bulk(link, sections)
            node.bulk_outbox.clear()
        if node.casts:
            casts = node.casts[:]
            node.casts.clear()
            for address, scope, msg in casts:
                self._send_datagram(node, address, scope, msg)

    def _trace_leaving(self, node: SimNode, traces: SimTraces) -> None:
        if traces.level < Level.MESSAGES:
            return
        for outbox in (node.outbox, node.bulk_outbox):
            for peer, sections in outbox.items():
                traces.passed(SENT, node, peer, sections)
        for address, scope, msg in node.casts:
            traces.passed(CAST, node, f"{address.host}:{address.port}", [scope, [msg]])

    def _open(self, node: SimNode, peer: NodeId) -> Link | None:
        target = self._sim.nodes.get(peer)
        if target is None or (self._sim.network.strict_contacts and peer not in node.contacts):
            self._sim.counts["no-contact"] += 1
            return None
        limit = self._sim.network.bandwidth
        if limit is None:
            link = Link(node, target)
        else:
            link = Link(node, target, limit(node.name, peer) if callable(limit) else limit)
        node.links[peer] = link
        return link

    def _send_shaped(self, link: Link, sections: Sections) -> None:
        leaves = self._leaves_at(link, link.free_at, sections)
        if leaves is None:
            return
        link.free_at = leaves
        base = leaves + self._latency(link.source, link.target)
        if self._sim.faults.rules:
            self._send_bent(link, sections, base)
        else:
            link.arrives = at = max(base, link.arrives)
            self._push((at, self._next(), self._deliver, link, sections))

    def _send_bent(self, link: Link, sections: Sections, base: float) -> None:
        link.arrives = self._pass(link, sections, base, link.arrives)

    def _send_bulk(self, link: Link, sections: Sections) -> None:
        """The other lane overtakes this one: it waits for both, and its order is its own."""
        leaves = self._leaves_at(link, max(link.free_at, link.bulk_free_at), sections)
        if leaves is not None:
            link.bulk_free_at = leaves
            base = leaves + self._latency(link.source, link.target)
            link.bulk_arrives = self._pass(link, sections, base, link.bulk_arrives)

    def _pass(self, link: Link, sections: Sections, base: float, not_before: float) -> float:
        """Let a frame travel; returns when the last copy that keeps its order arrives."""
        sim = self._sim
        passage, slow = self._bend(link.source, link.target, datagram=False)
        for copy in passage:
            at = base + copy.extra
            if copy.in_order:
                at = not_before = max(at, not_before)
            if slow:
                sim.schedule(
                    at, self._queue_at_slow, link.target, slow, self._deliver, link, sections
                )
            else:
                sim.schedule(at, self._deliver, link, sections)
        return not_before

    def _leaves_at(self, link: Link, free_at: float, sections: Sections) -> float | None:
        """When a frame is through the line that is free at that time; None: no room to wait."""
        sim, model = self._sim, self._sim.network
        if model.bandwidth is None:
            return sim.now
        start = max(sim.now, free_at)
        if (start - sim.now) * link.bandwidth > model.queue_bytes:
            sim.counts["queue-full"] += _size(sections)
            return None
        weight = self._weigh(link.source.name, link.target.name, sections)
        return start + weight / link.bandwidth

    def _send_datagram(
        self, node: SimNode, address: UdpAddress | Group, scope: Scope, msg: Message
    ) -> None:
        sim = self._sim
        if isinstance(address, Group):
            targets = [other for other in sim.nodes.values() if other.lan == node.lan]
        else:
            targets = [sim.nodes[address.host]] if address.host in sim.nodes else []
        loss = sim.network.datagram_loss
        for target in targets:
            if target is node and isinstance(address, Group):
                continue  # as the driver drops its own beacons
            passage, slow = self._bend(node, target, datagram=True)
            for copy in passage:
                if loss and self._rng.random() < loss:
                    sim.counts["lost"] += 1
                    continue
                at = sim.now + self._latency(node, target) + copy.extra
                what = (self._on_datagram, node.name, target, scope, msg)
                if slow:
                    sim.schedule(at, self._queue_at_slow, target, slow, *what)
                else:
                    sim.schedule(at, *what)

    def _latency(self, source: SimNode, target: SimNode) -> float:
        if self._far is not None and source.lan != target.lan:
            return self._far()
        return self._near()

    def _bend(self, source: SimNode, target: SimNode, *, datagram: bool) -> tuple[Passage, float]:
        """Return the copies that the rules in force let through, and the target's slowness."""
        passage = [Copy(0.0, in_order=True)]
        sim = self._sim
        slow = 0.0
        for rule in sim.faults.touching(source.name, target.name, sim.now, datagram=datagram):
            if isinstance(rule, Slow):
                slow += rule.delay
            rule.bend(passage, self._rng)
        if not passage:
            sim.counts["lost"] += 1
        elif len(passage) > 1:
            sim.counts["duplicated"] += len(passage) - 1
        return passage, slow

    # -- arriving ---------------------------------------------------------------------------------

    def _queue_at_slow(self, entry: Entry) -> None:
        target: SimNode
        at, _, _, target, delay, *what = entry
        target.busy_until = max(at, target.busy_until) + delay
        self._sim.schedule(target.busy_until, *what)

    def _on_frame(self, entry: Entry) -> None:
        link: Link
        at, _, _, link, sections = entry
        node = link.target
        host = node.host
        sim = self._sim
        if host is None:
            sim.counts["dead-target"] += _size(sections)
            return
        if node.backlog is not None:
            node.backlog.append(entry)
            return
        if not link.up:
            self._handshake(link)
        source = link.source.name
        if self._wire is not None:
            sections = self._wire.pass_sections(host, source, sections)
        self._write((at, node.index, source, sections), self._trace, -1)
        if sim.reader is not None:
            sim.reader((at, node.name, "frame", (source, sections)))
        sim.stepping = node
        if sim.traces is not None and sim.traces.level >= Level.MESSAGES:
            sim.traces.passed(RECEIVED, node, source, sections)
        now = at if node.clock is None else node.clock.read(at)
        self.frames += 1
        if len(sections) == 2:  # one scope: by far the most frequent frame
            scope, batch = sections
            self.messages += len(batch)
            host.receive(source, scope, batch, now)
        else:
            for index in range(0, len(sections), 2):
                self.messages += len(sections[index + 1])
                host.receive(source, sections[index], sections[index + 1], now)
        sim.settle(node, host, now)

    def _on_datagram(self, entry: Entry) -> None:
        target: SimNode
        _, _, _, source, target, scope, msg = entry
        sim = self._sim
        host = target.host
        if host is None:
            sim.counts["dead-target"] += 1
            return
        if target.backlog is not None:
            target.backlog.append(entry)
            return
        if self._wire is not None:
            passed = self._wire.pass_batch(host, source, [msg])
            if not passed:
                return
            msg = passed[0]
        self.messages += 1
        sim.note(target, "datagram", (source, msg))
        if sim.traces is not None and sim.traces.level >= Level.MESSAGES:
            sim.traces.passed(HEARD, target, source, [scope, [msg]])
        now = sim.clock_of(target)
        origin = Origin(UdpAddress(source, UDP_PORT), source, now)
        host.receive_datagram(origin, scope, msg, now)
        sim.settle(target, host, now)

    # -- what drivers notice about links ----------------------------------------------------------

    def _handshake(self, link: Link) -> None:
        link.up = True
        source, target = link.source, link.target
        target.contacts.setdefault(source.name, ())  # it can answer over the link that came in
        if source.links.get(target.name) is link:  # or that process is dead by now
            sim = self._sim
            sim.schedule(sim.now, self._announce, source, source.life, LinkUp(target.name))

    def hang_up(self, gone: SimNode, reason: str) -> None:
        """Close the connections of a process that ended; its peers' drivers notice."""
        sim = self._sim
        for node in sim.nodes.values():
            out, back = node.links.get(gone.name), gone.links.get(node.name)
            if node is gone or not ((out and out.up) or (back and back.up)):
                continue
            if out:
                out.up = False
            cut = sim.faults.blocked(gone.name, node.name, sim.now)
            after = sim.network.heartbeat_timeout if cut else sim.network.disconnect_notice
            lost = LinkLost(gone.name, reason)
            sim.schedule(sim.now + after, self._announce, node, node.life, lost)

    def watch_cut(self, rule: Rule) -> None:
        """A rule was added: links that it cuts are noticed by heartbeat, if it stays."""
        sim = self._sim
        if type(rule).blocks is not Rule.blocks and rule.start < inf:
            begins = max(sim.now, rule.start)
            sim.schedule(begins + sim.network.heartbeat_timeout, self._heartbeats_missed, rule)

    def _heartbeats_missed(self, entry: Entry) -> None:
        rule: Rule = entry[3]
        sim = self._sim
        if rule in sim.faults and rule.start <= sim.now < rule.end:
            for node in list(sim.nodes.values()):
                for link in list(node.links.values()):
                    here, there = node.name, link.target.name
                    if link.up and (rule.blocks(here, there) or rule.blocks(there, here)):
                        self._time_out(link)

    def watch_silence(self, paused: SimNode) -> None:
        """A process was frozen: its peers notice by heartbeat, if it stays so."""
        sim = self._sim
        after = sim.now + sim.network.heartbeat_timeout
        sim.schedule(after, self._silence_noticed, paused, paused.backlog)

    def _silence_noticed(self, entry: Entry) -> None:
        paused: SimNode = entry[3]
        if paused.backlog is not entry[4]:
            return  # it went on, or died
        for node in list(self._sim.nodes.values()):
            link = node.links.get(paused.name)
            if link is not None and link.up:
                link.up = False
                self._sim.announce(node, LinkLost(paused.name, "heartbeat"))

    def _time_out(self, link: Link) -> None:
        """Both ends notice, once, whichever of them opened links."""
        link.up = False
        back = link.target.links.get(link.source.name)
        if back is not None:
            back.up = False
        for node, peer in ((link.source, link.target.name), (link.target, link.source.name)):
            if node.backlog is None:
                self._sim.announce(node, LinkLost(peer, "heartbeat"))

    def _announce(self, entry: Entry) -> None:
        node: SimNode
        _, _, _, node, life, event = entry
        if node.life != life:
            return
        if node.backlog is not None:
            node.backlog.append(entry)
            return
        self._sim.announce(node, event)


def _encoded_size(_source: NodeId, _target: NodeId, sections: Sections) -> int:
    return len(encoded(sections))


def _size(sections: Sections) -> int:
    """Count the messages of a frame."""
    return sum(len(batch) for batch in sections[1::2])
