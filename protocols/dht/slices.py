"""How many slices a zone has on the upper tier ring: by its size, but not at every change of it."""

from __future__ import annotations

from math import inf


def slices_for(servers: int, slice_size: int) -> int:
    """§2.2: ceil(size / slice_size): a zone of 64 is A:1 and A:2, one of 1,024 is B:1 … B:32."""
    return -(-servers // slice_size)


def next_slices(current: int, servers: int, slice_size: int, slack: float) -> int:
    """The number of slices now: it stays until the size is `slack` slices past a boundary.

    A zone that loses and gains a member at a boundary would else move a slice's keys each time.
    A zone without servers has none, and one that had none takes what its size says.
    """
    wanted = slices_for(servers, slice_size)
    if not servers or not current:
        return wanted
    margin = slack * slice_size
    if wanted > current and servers > current * slice_size + margin:
        return wanted
    if wanted < current and servers <= (current - 1) * slice_size - margin:
        return max(wanted, 1)
    return current


class SliceCounter:
    """The same over time: within the slack slices follow the size, too, but not at once.

    Else zones of one size would differ for ever, by what they began with.
    """

    def __init__(self, slice_size: int, slack: float, patience: float) -> None:
        self._slice_size = slice_size
        self._slack = slack
        self._patience = patience
        self._differs_since = inf

    def count(self, current: int, servers: int, now: float) -> tuple[int, float]:
        """The number of slices now, and when it may be another one without any change of size."""
        wanted = slices_for(servers, self._slice_size)
        slices = next_slices(current, servers, self._slice_size, self._slack)
        if slices == wanted:
            self._differs_since = inf
            return slices, inf
        self._differs_since = min(self._differs_since, now)
        due = self._differs_since + self._patience
        return (wanted, inf) if now >= due else (slices, due)
