"""`overlay lab up`: check, install, give keys, start, and wait until all agree."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import trio

from nodes.lab import plan as planning
from nodes.lab import wheels
from nodes.lab.checks import PROBE_SECONDS, deaf_hosts, problems
from nodes.lab.failures import HostFailure
from nodes.lab.fleet import Fleet, connected
from nodes.lab.inventory import Inventory
from nodes.lab.keys import LabKeys
from nodes.lab.onhost.facts import digest
from nodes.lab.operator import LabError, Operator, Reached, cache_folder
from nodes.lab.outcome import Outcome
from nodes.lab.plan import LabPeer, peers_of
from nodes.lab.progress import Progress
from nodes.lab.remote import Remote
from nodes.lab.rolling import one_by_one
from nodes.lab.watching import agreed, blame, look
from nodes.settings import SECTIONS
from overlay.config import load_settings
from overlay.profiles import load_profile
from overlay.toml_source import Source
from protocols.beacon.config import BeaconSettings

INSTALL_SECONDS = 900.0
SEND_SECONDS = 600.0  # for 20 to 70 MB of wheels


async def up(inventory: Inventory, operator: Operator, tell: Progress, *, rebuild: bool) -> Outcome:
    """Bring the lab up, or make it again what the inventory says."""
    outcome = Outcome(lab=inventory.name)
    peers = planning.plan(inventory)
    async with connected(inventory, inventory.hosts, tell) as fleet:
        await check(fleet)
        if not fleet.remotes:
            outcome.take(fleet)
            return outcome
        addresses = remember(fleet, operator)
        houses = await install(fleet, rebuild=rebuild)
        keys = None if inventory.lab.insecure else LabKeys(operator)
        await _give_keys(fleet, keys)
        changed = await _start(fleet, peers, addresses, houses, keys, outcome)
        await _restart_changed(fleet, peers, changed, outcome)
        there = {name: peer for name, peer in peers.items() if peer.host in fleet.remotes}
        tell.step("waiting until all zone tables agree")
        left = await agreed(fleet, there, gone=outcome.removed)
        blame(fleet, peers, left)
        outcome.peers = await look(fleet)
        await fleet.each("tidying up", lambda remote: remote.call("prune"))
        outcome.take(fleet)
    forgotten = [
        name for name in operator.reached() if name not in {h.name for h in inventory.hosts}
    ]
    for name in forgotten:
        reason = "is no longer in the inventory, but may still run peers"
        outcome.warnings[name] = f"{reason}: `overlay lab remove-host {name}`"
    return outcome


async def check(fleet: Fleet) -> None:
    """Leave out every host with which something is wrong."""
    settings = fleet.inventory.checks
    fleet.tell.step("checking Python, clocks, disks, ports")

    async def learn(remote: Remote) -> None:
        await remote.learn({peer.name: peer.port for peer in peers_of(remote.host)})
        for problem in problems(remote.facts, remote.asked_at, settings):
            raise problem

    await fleet.each("checking", learn)
    beacon = _beacon(fleet.inventory)
    if settings.multicast == "off" or len(fleet.remotes) < 2 or not beacon.ipv4_group:
        return
    fleet.tell.step("checking multicast between the hosts")
    names, nonce = list(fleet.remotes), secrets.token_hex(8)

    async def listen(remote: Remote) -> list[str]:
        told: list[str] = await remote.call(
            "multicast",
            me=remote.name,
            others=[name for name in names if name != remote.name],
            nonce=nonce,
            group=beacon.ipv4_group,
            port=beacon.port,
            seconds=PROBE_SECONDS,
        )
        return told

    heard = await fleet.each("listening", listen)
    for name, failure in deaf_hosts(heard, f"{beacon.ipv4_group}:{beacon.port}").items():
        if settings.multicast == "required":
            fleet.fail(name, failure)
        else:
            fleet.warnings[name] = failure


def _beacon(inventory: Inventory) -> BeaconSettings:
    told = Source(str(inventory.path), inventory.settings)
    settings = load_settings(SECTIONS, load_profile(inventory.lab.profile), told)["beacon"]
    assert isinstance(settings, BeaconSettings)
    return settings


def remember(fleet: Fleet, operator: Operator) -> dict[str, str]:
    """The addresses at which hosts reach each other, those of unreachable hosts from before."""
    known = operator.reached()
    for remote in fleet.remotes.values():
        told = [
            remote.host.overlay_address,
            *remote.facts.get("addresses", ()),
            remote.host.address,
        ]
        known[remote.name] = Reached(next(filter(None, told)))
    operator.remember(known)
    return {name: reached.address for name, reached in known.items()}


async def install(fleet: Fleet, *, rebuild: bool = False) -> dict[str, str]:
    """Have an environment of this build on every host; its name, by host."""
    if not fleet.remotes:
        return {}
    cache = cache_folder()
    if rebuild:
        await trio.to_thread.run_sync(wheels.forget, cache)
    fleet.tell.step("building the wheel and its wheelhouse")
    wheel = await trio.to_thread.run_sync(wheels.own_wheel, cache)
    wanted = planning.requirement(fleet.inventory)
    houses: dict[wheels.Target, wheels.House] = {}
    for remote in list(fleet.remotes.values()):
        target = wheels.Target.of(remote.facts)
        if target not in houses:
            try:
                houses[target] = await trio.to_thread.run_sync(
                    wheels.wheelhouse, cache, wheel, target, wanted
                )
            except LabError as error:
                if not target.platforms:
                    raise
                fleet.fail(remote.name, HostFailure(str(error), f"Python {target.version} there?"))
    fleet.tell.step("installing")

    async def one(remote: Remote) -> str:
        house = houses[wheels.Target.of(remote.facts)]
        if house.key not in remote.facts["envs"]:
            missing = await remote.call("missing-wheels", house=house.key, wheels=house.wheels)
            if missing:
                fleet.tell.host(remote.name, f"sending {len(missing)} wheels")
                files = {f"houses/{house.key}/{name}": house.folder / name for name in missing}
                await remote.unpack(files, SEND_SECONDS)
            fleet.tell.host(remote.name, "making its environment")
            await remote.call(
                "install", house=house.key, requirement=wanted, within=INSTALL_SECONDS
            )
        return house.key

    return await fleet.each("installing", one)


async def _give_keys(fleet: Fleet, keys: LabKeys | None) -> None:
    """Issue what is missing, and send each host what it lacks of its own."""
    if keys is None or not fleet.remotes:
        return
    fleet.tell.step("issuing keys")
    for remote in fleet.remotes.values():
        await trio.to_thread.run_sync(keys.issue, peers_of(remote.host))

    async def send(remote: Remote) -> None:
        have = remote.facts["keys"]
        files: dict[str, Any] = {}
        for peer in peers_of(remote.host):
            if have.get(peer.name) != keys.certificate(peer.name):
                files |= keys.files(peer.name)
        if files:
            await remote.unpack(files, SEND_SECONDS)
        if remote.facts["revoked"] not in ([], [digest(keys.revocations_file)]):
            await remote.call("revoked", list=keys.revocations().decode())

    await fleet.each("sending keys", send)


async def _start(
    fleet: Fleet,
    peers: Mapping[str, LabPeer],
    addresses: Mapping[str, str],
    houses: Mapping[str, str],
    keys: LabKeys | None,
    outcome: Outcome,
) -> dict[str, dict[str, Any]]:
    """Start who is new and stop who is no longer wanted; what has changed, by name."""
    fleet.tell.step("starting peers")
    bdns = planning.bdns(peers, addresses)
    changed: dict[str, dict[str, Any]] = {}

    async def one(remote: Remote) -> None:
        specs = remote.facts["specs"]
        running = set(remote.facts["running"])
        fresh = {}
        for peer in peers_of(remote.host):
            seeds = planning.seeds(peer, peers, addresses)
            words = planning.words(fleet.inventory, peer, seeds, bdns)
            certificate = "" if keys is None else keys.certificate(peer.name)
            before = specs.get(peer.name, {})
            spec = {
                "words": words,
                "env": houses[remote.name],
                "fingerprint": planning.fingerprint(words, certificate),
            }
            if peer.name not in running:
                fresh[peer.name] = spec
            elif before.get("fingerprint") != spec["fingerprint"]:
                changed[peer.name] = spec
            elif before["env"] != spec["env"]:
                outcome.older.append(peer.name)  # a build is changed by `upgrade` alone
        surplus = [name for name in specs if name not in peers or peers[name].host != remote.name]
        if fresh or surplus:
            await remote.call("apply", specs=fresh, remove=surplus)
        outcome.started += fresh
        outcome.removed += [name for name in surplus if name not in peers]

    await fleet.each("starting", one)
    return changed


async def _restart_changed(
    fleet: Fleet,
    peers: Mapping[str, LabPeer],
    changed: Mapping[str, dict[str, Any]],
    outcome: Outcome,
) -> None:
    if not changed:
        return
    there = {name: peer for name, peer in peers.items() if peer.host in fleet.remotes}
    chosen = {name: there[name] for name in changed if name in there}

    async def restart(remote: Remote, peer: LabPeer) -> None:
        await remote.call("apply", specs={peer.name: changed[peer.name]}, remove=[])

    outcome.restarted = await one_by_one(fleet, there, chosen, restart, doing="restarting")
