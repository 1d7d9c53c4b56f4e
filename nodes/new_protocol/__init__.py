"""`overlay new-protocol NAME`: writes the folder of a protocol that already works, and its test."""

from nodes.new_protocol.writing import Written, write_protocol

__all__ = ["Written", "write_protocol"]
