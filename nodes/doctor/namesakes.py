"""Two overlays of one name: each ignores the other, and people wonder where their peers are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nodes.doctor.case import Case
from nodes.doctor.finding import Finding, hint, well, wrong
from nodes.doctor.hearing import Heard

SOME = 3  # names that a sentence lists


def check(case: Case) -> Iterator[Finding]:
    """Compare everybody who is heard, those of this machine too."""
    yield from compare(case.heard, case.listen)


def compare(heard: Iterable[Heard], seconds: float) -> Iterator[Finding]:
    """Overlays by name, and by authority within a name."""
    overlays: dict[str, dict[bytes, list[Heard]]] = {}
    for one in heard:
        overlays.setdefault(one.overlay, {}).setdefault(one.authority, []).append(one)
    if not overlays:
        yield hint(
            f"nobody was heard in {seconds:g} s: beacons of a quiet zone are minutes apart",
            "listen longer with --listen, or start a peer",
        )
    for name, authorities in overlays.items():
        told = "; ".join(
            f"{ones[0].authority_word}: {_some(ones)}" for ones in authorities.values()
        )
        if len(authorities) > 1:
            yield wrong(
                f"{len(authorities)} overlays are called {name!r} ({told}): they ignore each other",
                "copy keys of one authority to all nodes, run all or none with --insecure, or"
                " give one overlay another name (`overlay keys init --overlay NAME`, `--overlay`)",
            )
        else:
            yield well(f"overlay {name!r} was heard, {told}")


def _some(ones: list[Heard]) -> str:
    names = [f"{one.name} at {one.host}" if one.host else one.name for one in ones]
    more = f" and {len(names) - SOME} more" if len(names) > SOME else ""
    return ", ".join(names[:SOME]) + more
