"""Driver 2: hosts by the thousand in virtual time, with faults, checks and replay."""

from overlay.sim.clock import NodeClock
from overlay.sim.failure import SimulationFailed
from overlay.sim.faults import Delay, Duplicate, Loss, OneWay, Partition, Reorder, Rule, Slow
from overlay.sim.network import Constant, Exponential, Latency, LogNormal, NetworkModel, Uniform
from overlay.sim.simulator import Simulator
from overlay.sim.stage import SimStage

__all__ = [
    "Constant",
    "Delay",
    "Duplicate",
    "Exponential",
    "Latency",
    "LogNormal",
    "Loss",
    "NetworkModel",
    "NodeClock",
    "OneWay",
    "Partition",
    "Reorder",
    "Rule",
    "SimStage",
    "SimulationFailed",
    "Simulator",
    "Slow",
    "Uniform",
]
