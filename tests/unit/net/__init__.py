"""Tests of the driver's parts that need no sockets."""
