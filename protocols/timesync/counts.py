"""What `overlay status` shows of the time service."""

import msgspec


class TimeCounts(msgspec.Struct):
    """How often what happened, since the start."""

    polls: int = 0
    samples: int = 0
    late: int = 0  # replies to requests that had ended, or second copies
    lost: int = 0  # requests that nobody answered in time
    odd: int = 0  # samples that contradicted the others of their source
    restarts: int = 0  # a source's clock was set, or the way to it changed
    served: int = 0
    not_served: int = 0  # over `serve_rate` or `source_rate`
    falsetickers: int = 0  # times that a source was outvoted
    outvoted: int = 0  # times that this node's own time was
    steps: int = 0  # corrections forward at once
