"""Scenarios: stories about nodes that must end well, in the simulator and over ZeroMQ.

A new protocol adds one module here; `registry` finds it.
"""
