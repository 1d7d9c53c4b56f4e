"""The framework: identities, the wire, one node as a pure host, and two drivers that run it.

Importing this package loads nothing else, so that a node pays only for the parts it uses.
"""

from __future__ import annotations

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """Look `__version__` up on demand: importlib.metadata would slow every node's start."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("zmq-overlay")
