"""Which scenarios there are: `@scenario("echo-loss", nodes=8)` above a script enters it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules

import nodes.scenarios as folder
from overlay.errors import ConfigError
from overlay.scenario import Script
from overlay.sim import NetworkModel, Rule

NOT_SCENARIOS = (
    *("campaign", "registry", "running", "topic_history", "topic_world"),
    *("dht_world", "dht_federation", "content_world", "resources_world", "resources_oracle"),
    *("mobility_world", "away_world"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One scenario, and how it is run unless somebody says otherwise."""

    name: str
    script: Script
    nodes: int
    long: int  # nodes in the long campaign
    faults: tuple[Rule, ...]  # in force from the start, in the simulator
    network: NetworkModel
    both_worlds: bool  # False: it needs what only a simulator can do

    @property
    def about(self) -> str:
        """The first line of the script's docstring."""
        return (self.script.__doc__ or "").strip().partition("\n")[0]


_entries: dict[str, Entry] = {}


def scenario(
    name: str,
    *,
    nodes: int,
    long: int = 0,
    faults: tuple[Rule, ...] = (),
    network: NetworkModel | None = None,
    both_worlds: bool = True,
) -> Callable[[Script], Script]:
    """Enter a script under a name; rules in `faults` need the simulator."""

    def enter(script: Script) -> Script:
        if name in _entries:
            raise ConfigError(f"two scenarios are called {name}: rename one")
        _entries[name] = Entry(
            name,
            script,
            nodes,
            long or nodes * 4,
            faults,
            network or NetworkModel(),
            both_worlds and not faults,
        )
        return script

    return enter


def all_scenarios() -> list[Entry]:
    """Import every module of this folder, and return what they entered, by name."""
    for module in iter_modules(folder.__path__):
        if module.name not in NOT_SCENARIOS:
            import_module(f"{folder.__name__}.{module.name}")
    return [_entries[name] for name in sorted(_entries)]


def find(name: str) -> Entry:
    """Return that scenario, or say which one may have been meant."""
    known = {entry.name: entry for entry in all_scenarios()}
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else "`overlay sim --list` shows them all"
    raise ConfigError(f"there is no scenario {name}: {hint}")
