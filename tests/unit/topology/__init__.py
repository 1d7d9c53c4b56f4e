"""Unit tests of the topology of a zone."""
