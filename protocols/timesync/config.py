"""The settings of the time service: section `[time]` of a config file."""

from typing import Annotated

from overlay.config import Settings, bounded, sized


class TimeSettings(Settings, frozen=True, kw_only=True):
    """Whom a node asks for the time, how often, and how it corrects itself."""

    servers: Annotated[
        tuple[str, ...],
        sized(0, 8, "IP:PORT of overlay nodes asked besides members, as of another overlay"),
    ] = ()
    ntp: Annotated[
        tuple[str, ...],
        sized(0, 8, "HOST:PORT of NTP servers; best on all nodes, and at least three"),
    ] = ()
    sources: Annotated[
        int,
        bounded("members", 1, 16, "asked by one node: with four, one liar is always outvoted"),
    ] = 4
    burst: Annotated[
        int,
        bounded("polls", 1, 64, "of a new source at once: the least delay of 16 is near the base"),
    ] = 16
    burst_every: Annotated[
        float,
        bounded("s", 0.01, 10, "pause between polls of a burst: 16 of them end before 5 s"),
    ] = 0.25
    poll_first: Annotated[
        float, bounded("s", 0.1, 3600, "pause after the burst; doubled each `poll_double` polls")
    ] = 1.0
    poll_longest: Annotated[
        float,
        bounded("s", 0.1, 86_400, "where doubling ends: 4 sources cost 100 B/s with certificates"),
    ] = 64.0
    poll_double: Annotated[
        int, bounded("polls", 1, 1000, "until the pause is doubled: so long drift is being learned")
    ] = 16
    timeout: Annotated[
        float, bounded("s", 0.01, 60, "a later reply has lost its worth: its delay says nothing")
    ] = 2.0
    first_samples: Annotated[
        int, bounded("samples", 1, 64, "of a source before it counts: one alone may be the slowest")
    ] = 4
    samples: Annotated[
        int, bounded("samples", 4, 1024, "kept of each source: drift shows over minutes")
    ] = 64
    sample_age: Annotated[
        float,
        bounded("s", 10, 86_400, "of samples that count: a crystal's frequency holds so long"),
    ] = 3000.0
    found_after: Annotated[
        float,
        bounded("s", 0, 600, "the senior of those who know no time waits so long, then is root"),
    ] = 1.0
    slew_over: Annotated[
        float, bounded("s", 0.01, 3600, "over which a correction is spread: small ones are smooth")
    ] = 1.0
    slew_limit: Annotated[
        float,
        bounded("s/s", 0.001, 0.95, "of overlay time that a correction may take away or add"),
    ] = 0.8
    step_over: Annotated[
        float, bounded("s", 0.001, 1e6, "a correction forward that is larger is made at once")
    ] = 0.25
    review: Annotated[
        float, bounded("s", 0.1, 600, "pause between looks at who is there to be asked")
    ] = 5.0
    rotate: Annotated[
        float, bounded("s", 1, 86_400, "after which a random voter makes room for another")
    ] = 320.0
    serve_rate: Annotated[
        float,
        bounded("1/s", 1, 1e6, "replies, at most: each costs a signature; a dozen ask, in bursts"),
    ] = 500.0
    source_rate: Annotated[
        float,
        bounded(
            "1/s", 1, 1e6, "of them to one host, where many nodes may run; others have the rest"
        ),
    ] = 200.0
