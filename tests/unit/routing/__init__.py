"""Unit tests of routing in a zone."""
