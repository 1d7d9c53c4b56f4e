"""The settings of colonies: section `[colony]` of a config file."""

from __future__ import annotations

from typing import Annotated, Literal

from overlay.config import Settings, because, bounded, sized
from overlay.errors import ConfigError


class ColonySettings(Settings, frozen=True, kw_only=True):
    """Whose individual a unit is, how a broker searches, and how patient everybody is."""

    # -- the tree -------------------------------------------------------------------------------
    placement: Annotated[
        Literal["zone", "tree"],
        because("zone: the delegate of a zone leads it, delegates follow the first; tree: as told"),
    ] = "zone"
    leads: Annotated[bool, because("a broker from the start, where the tree is told")] = False
    leader: Annotated[
        str, sized(0, 300, "HOST:PORT of the leader, where the tree is told; none: a root")
    ] = ""
    leaders: Annotated[
        tuple[str, ...], sized(0, 16, "HOST:PORT of leaders to turn to when that one is gone")
    ] = ()
    beat: Annotated[
        float, bounded("s", 0.02, 600, "between signs of life: costs a leader two messages each")
    ] = 2.0
    lease: Annotated[
        float, bounded("s", 0.1, 3600, "silence that ends a membership: three beats and a half")
    ] = 7.0
    probe: Annotated[
        float, bounded("s", 0.02, 600, "for a sign of life after a lost link: a reconnection")
    ] = 2.0
    login_within: Annotated[
        float, bounded("s", 0.02, 60, "for an answer to a LogIn: a new link takes five round trips")
    ] = 1.5
    retry: Annotated[
        float, bounded("s", 0.05, 600, "pause when no known leader takes this unit; it doubles")
    ] = 1.0
    retry_most: Annotated[float, bounded("s", 0.05, 3600, "longest such pause")] = 15.0
    home_every: Annotated[
        float, bounded("s", 0.1, 86_400, "between attempts to return to the leader it was told")
    ] = 20.0
    max_individuals: Annotated[
        int, bounded("units", 1, 1_000_000, "of one leader: about 1 KB each, and two messages/beat")
    ] = 10_000
    max_services: Annotated[
        int, bounded("services", 1, 65_536, "of one individual's colony: the leader keeps them")
    ] = 65_536

    # -- searching ------------------------------------------------------------------------------
    mode: Annotated[
        Literal["broadcast", "exhaustive", "greedy-random", "greedy-ordered"],
        because("how a broker picks individuals, unless a request says so itself"),
    ] = "greedy-ordered"
    order: Annotated[
        Literal["latency", "acceptance"],
        because("of greedy-ordered: the nearest first, or who accepted most (tit for tat)"),
    ] = "acceptance"
    fanout: Annotated[
        int, bounded("individuals", 1, 1000, "asked at a time in greedy modes: 1 costs least")
    ] = 1
    within: Annotated[
        float, bounded("s", 0.05, 86_400, "a request's time, unless it says so itself")
    ] = 10.0
    longest: Annotated[
        float, bounded("s", 0.1, 86_400, "a broker searches for: its client may have said any time")
    ] = 600.0
    child_share: Annotated[
        float, bounded("share", 0.05, 0.95, "of what is left that a child may take, silent or not")
    ] = 0.5
    last_share: Annotated[
        float, bounded("share", 0.05, 0.95, "that the last to be asked may take, as a leader is")
    ] = 0.9
    least: Annotated[
        float, bounded("s", 0.0, 60, "of time below which nobody is asked any more: two hops")
    ] = 0.005
    max_open: Annotated[
        int, bounded("requests", 1, 10_000_000, "searched for at once: about 1 KB each")
    ] = 100_000
    remembered: Annotated[
        int, bounded("requests", 1, 10_000_000, "ended ones, whose copies are not searched again")
    ] = 20_000

    # -- laziness -------------------------------------------------------------------------------
    lazy_after: Annotated[
        int, bounded("answers", 0, 1_000_000, "refusals and timeouts in a row; 0: nobody is lazy")
    ] = 200
    lazy_ban: Annotated[
        float, bounded("s", 0, 86_400, "in which a lazy individual is not taken again")
    ] = 60.0

    # -- reliable requests ----------------------------------------------------------------------
    resend: Annotated[
        float, bounded("s", 0.01, 60, "until an Ack; a disk and two hops take less; it doubles")
    ] = 0.5
    resend_most: Annotated[float, bounded("s", 0.01, 600, "longest such pause")] = 4.0

    def check(self) -> None:
        """A sign of life must have time to come."""
        if self.lease <= self.beat:
            raise ConfigError(
                f"lease = {self.lease} is not over beat = {self.beat}: "
                f"raise lease to {3.5 * self.beat:g}"
            )
        if self.resend_most < self.resend or self.retry_most < self.retry:
            raise ConfigError("resend_most and retry_most must be over resend and retry")
