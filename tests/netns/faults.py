"""What is wrong with the network, as data, and as the nft rules that make it so.

The rules are of the bridge family, in the switch's namespace: one place sees every frame, with
the port that it came from and the one that it goes to, ARP and neighbour discovery included.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

from tests.netns.host import Host, Port

TABLE = "faults"
_SHARES = 10_000  # loss is drawn in hundredths of a percent


class Loss(NamedTuple):
    """A share of frames that vanish; of all frames, or of those from and to some ports."""

    percent: float
    ports: tuple[Port, ...] = ()


@dataclass
class Faults:
    """The cuts and losses in force; `script` is what nft loads for them."""

    cuts: dict[tuple[Host, Host], None] = field(default_factory=dict)  # from -> to
    losses: list[Loss] = field(default_factory=list)

    def partition(self, groups: Sequence[Iterable[Host]], *, one_way: bool) -> None:
        """Cut every group off from every other, or only what the first sends to the second."""
        sides = [tuple(group) for group in groups]
        if len(sides) < 2 or (one_way and len(sides) > 2):
            raise ValueError(f"{len(sides)} groups: take two, or more when both ways are cut")
        hosts = [host for side in sides for host in side]
        if len(set(hosts)) < len(hosts):
            raise ValueError(f"a host is in two groups: {hosts}")
        pairs = [(sides[0], sides[1])] if one_way else permutations(sides, 2)
        for senders, receivers in pairs:
            self.cuts.update({(a, b): None for a in senders for b in receivers})

    def lose(self, percent: float, ports: Iterable[Port] = ()) -> None:
        """Lose that share; without ports it replaces every loss before."""
        if not 0 <= percent <= 100:
            raise ValueError(f"loss of {percent} %: write 0 to 100")
        chosen = tuple(ports)
        if chosen:
            self.losses.append(Loss(percent, chosen))
        else:
            self.losses = [Loss(percent)]

    def script(self) -> str:
        """Replace all rules in one transaction: no frame meets half of them."""
        rules = "\n".join(f"    {rule}" for rule in self.rules())
        return (
            f"table bridge {TABLE} {{}}\ndelete table bridge {TABLE}\n"
            f"table bridge {TABLE} {{\n  chain forward {{\n"
            "    type filter hook forward priority 0; policy accept;\n"
            f"{rules}\n  }}\n}}\n"
        )

    def rules(self) -> list[str]:
        """The rules, in order."""
        # Between a plug and its delay line a frame is still on its cable: judged only once.
        rules = ['iifname "t*" accept', 'oifname "t*" accept']
        for sender, receiver in self.cuts:
            rules.append(
                f"iifname {_names(sender.ports)} oifname {_names(receiver.ports)} counter drop"
            )
        for loss in self.losses:
            if loss.percent == 0:
                continue
            share = round(loss.percent * _SHARES / 100)
            # nft takes no comparison that always holds.
            draw = f"numgen random mod {_SHARES} < {share} " if share < _SHARES else ""
            sides = ("iifname", "oifname") if loss.ports else ()
            rules += [f"{side} {_names(loss.ports)} {draw}counter drop" for side in sides]
            if not sides:
                rules.append(f"{draw}counter drop")
        return rules


def _names(ports: Iterable[Port]) -> str:
    """Both names that a port may have on its bridge: its own, and its delay line's."""
    names = [name for port in ports for name in (port.plug, port.far_tap)]
    return "{ " + ", ".join(f'"{name}"' for name in names) + " }"
