"""Traces of any size with known answers, for tests and for scale.

    answers = generate(Path("traces"), Plan(rows=1_000_000))

Nodes of some zones publish to topics, and what befalls each subscriber is planned beforehand: so
many messages lost, repeated, swapped. One node crashes and others notice it after a known time; one
is suspected wrongly; one sends ten times as much; one has a clock that jumps; one path is slow at a
known leg. What the jobs must find is in `Answers`, counted while the rows were made.
"""

from overlay.traces.synthetic.plan import Answers, Plan
from overlay.traces.synthetic.world import generate

__all__ = ["Answers", "Plan", "generate"]
