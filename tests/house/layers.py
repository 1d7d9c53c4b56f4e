"""Who may import whom: arrows never point up, and no protocol can know which world it runs in."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.source import Import, Module, imports, modules

ABOVE = {
    "overlay": ("protocols", "nodes", "bench", "tests"),
    "protocols": ("nodes", "bench", "tests"),
    "nodes": ("bench", "tests"),
    "bench": ("tests",),
}

PURE_OVERLAY = (
    "overlay.config",
    "overlay.errors",
    "overlay.ids",
    "overlay.intervals",
    "overlay.patterns",
    "overlay.predicates",
    "overlay.protocol",
    "overlay.rates",
    "overlay.timetable",
    "overlay.tracing",
)
"""All of the framework that a protocol may import."""

OUTSIDE_WORLD = (
    *("asyncio", "concurrent", "datetime", "http", "io", "logging", "multiprocessing", "os"),
    *("pathlib", "pickle", "secrets", "selectors", "signal", "socket", "ssl", "subprocess"),
    *("tempfile", "threading", "time", "trio", "urllib", "uuid", "zeroconf", "zmq"),
)
"""I/O, clocks, threads, and randomness that no seed replays."""

WORLDLY_BUILTINS = ("__import__", "breakpoint", "eval", "exec", "input", "open", "print")

SYNCHRONOUS = (
    *("protocol", "ids", "intervals", "patterns", "errors", "host", "predicates", "rates"),
    *("timetable", "tracing", "wire", "sim"),
)
"""Parts of the framework that both drivers share, or that are the simulator itself."""

EVENT_LOOPS = ("asyncio", "socket", "threading", "trio", "zmq")

SIBLING_FACES = ("events", "interface")


def upward_imports(root: Path) -> list[str]:
    """`nodes -> protocols -> overlay`, and never the other way."""
    return [
        f"{found.where}: {layer} must not import {found.dotted}: "
        "layers point down (nodes -> protocols -> overlay)"
        for layer, above in ABOVE.items()
        for module in modules(root, layer)
        for found in imports(module)
        if any(found.within(upper) for upper in above)
    ]


def impure_protocols(root: Path) -> list[str]:
    """A protocol gets time, randomness and I/O as arguments and effects, never by import."""
    imported = [
        f"{found.where}: a protocol must not import {found.dotted}: {reason}"
        for module in modules(root, "protocols")
        for found in imports(module)
        if (reason := _impurity(found))
    ]
    called = [
        f"{module.where}:{node.lineno}: a protocol must not call {node.func.id}: push effects"
        for module in modules(root, "protocols")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in WORLDLY_BUILTINS
    ]
    return imported + called


def _impurity(found: Import) -> str:
    if any(found.within(world) for world in OUTSIDE_WORLD):
        return "time is the argument `now`, I/O is pushed as effects"
    if found.module == "random" and found.name != "Random":
        return "only `from random import Random`, for types; draw from self.rng"
    if found.within("overlay") and not any(found.within(pure) for pure in PURE_OVERLAY):
        return f"of the framework only {', '.join(PURE_OVERLAY)}"
    return ""


def loops_in_shared_parts(root: Path) -> list[str]:
    """What both drivers share knows neither trio nor ZeroMQ; the simulator has no threads."""
    shared = tuple(f"overlay.{part}" for part in SYNCHRONOUS)
    return [
        f"{found.where}: {module.name} must not import {found.dotted}: only overlay.net waits"
        for module in modules(root, "overlay")
        if any(f"{module.name}.".startswith(f"{part}.") for part in shared)
        for found in imports(module)
        if any(found.within(loop) for loop in EVENT_LOOPS)
    ]


def sibling_imports(root: Path) -> list[str]:
    """Of a sibling only its facts and its narrow interface, and nothing private of anybody."""
    problems = []
    for module in modules(root, "protocols"):
        for found in imports(module):
            sibling = _sibling(module, found)
            face = found.dotted.split(".")[2:3]
            if sibling and (not face or face[0] not in SIBLING_FACES):
                problems.append(
                    f"{found.where}: imports {found.dotted}: of a sibling only "
                    f"protocols.{sibling}.events and protocols.{sibling}.interface"
                )
            elif (sibling or found.within("overlay")) and _is_private(found):
                problems.append(f"{found.where}: {found.dotted} is private to its module")
    return problems


def sibling_cycles(root: Path) -> list[str]:
    """Dependencies between protocols are acyclic, so that one can be understood without all."""
    needs: dict[str, dict[str, str]] = {}
    for module in modules(root, "protocols"):
        for found in imports(module):
            if sibling := _sibling(module, found):
                needs.setdefault(module.name.split(".")[1], {}).setdefault(sibling, found.where)
    return [
        f"{where}: protocols {one} and {other} need each other: emit an event instead"
        for one, siblings in needs.items()
        for other, where in siblings.items()
        if one in _reachable(needs, other)
    ]


def _reachable(needs: dict[str, dict[str, str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for following in needs.get(todo.pop(), {}):
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return seen


def _sibling(module: Module, found: Import) -> str:
    """The other protocol that this import reaches into, or nothing."""
    here, there = module.name.split("."), found.dotted.split(".")
    if there[0] != "protocols" or len(there) < 2 or len(here) < 2 or there[1] == here[1]:
        return ""
    return there[1]


def _is_private(found: Import) -> bool:
    return any(part.startswith("_") and part != "__version__" for part in found.dotted.split("."))
