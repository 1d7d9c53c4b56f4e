"""What a paper says, what we found, and whether that is the same."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from overlay.errors import ConfigError

CONFIGS = Path(__file__).parents[2] / "configs" / "papers"


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One published figure: a `value` that ours is `within` of, or a bound on it."""

    name: str
    figure: str  # where it stands
    what: str
    unit: str
    value: float | None = None
    within: float = 0.0  # in the unit
    least: float | None = None
    most: float | None = None
    why: str = ""  # said where ours differs

    @property
    def told(self) -> str:
        """As the paper has it."""
        if self.value is not None:
            return f"{self.value:g} {self.unit}".strip()
        bound = f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"
        return f"{bound} {self.unit}".strip()

    def agrees(self, ours: float) -> bool:
        """Whether ours is what the paper says."""
        if self.value is not None:
            return abs(ours - self.value) <= self.within
        if self.least is not None:
            return ours >= self.least
        return self.most is not None and ours <= self.most


class Finding(msgspec.Struct, frozen=True):
    """A claim beside what we found; None: it cannot be tried yet."""

    claim: Claim
    ours: float | None
    note: str = ""

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.ours is None:
            return "not tried"
        return "agrees" if self.claim.agrees(self.ours) else "differs"


class Paper(msgspec.Struct, frozen=True):
    """A file of configs/papers: how to run it, and what it says."""

    name: str
    settings: dict[str, Any]
    claims: dict[str, Claim]

    def found(self, name: str, ours: float | None, note: str = "") -> Finding:
        """Put a figure of ours beside the claim of that name."""
        claim = self.claims[name]
        differs = ours is not None and not claim.agrees(ours)
        return Finding(claim, ours, note or (claim.why if differs else ""))


def read(name: str) -> Paper:
    """Read a paper's file; ConfigError says what is wrong in it."""
    path = CONFIGS / f"{name}.toml"
    settings = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        claims = msgspec.convert(settings.pop("published"), list[Claim])
    except (KeyError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path.name}: [[published]]: {error}") from None
    return Paper(name, settings, {claim.name: claim for claim in claims})
