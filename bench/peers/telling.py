"""How a peer of a contender tells its events: lines of JSON on stdout, with the monotonic clock."""

from __future__ import annotations

import json
import sys
import time


def tell(event: str, member: str = "") -> None:
    """Write one line at once."""
    told = {"event": event, "member": member, "monotonic": time.monotonic()}
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()
