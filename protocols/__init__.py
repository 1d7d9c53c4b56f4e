"""One folder for each protocol: pure state machines, with no I/O and no clock of their own.

A protocol imports the pure parts of `overlay`, and of a sibling only `events` and `interface`.
"""
