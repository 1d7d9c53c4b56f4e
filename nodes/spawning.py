"""How to start a peer in a process of its own, from wherever this package lies."""

import os
import sys
from pathlib import Path

from nodes.peer_options import PeerOptions, plain_words

ROOT = Path(__file__).resolve().parent.parent


def peer_command(options: PeerOptions) -> list[str]:
    """The words that start it; they hold no secret, so that `ps` may show them."""
    return [sys.executable, "-m", "nodes.cli", "peer", *plain_words(options)]


def peer_environment(**extra: str) -> dict[str, str]:
    """Its environment: it imports this package, and never a `nodes` of the current folder."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"} | extra
