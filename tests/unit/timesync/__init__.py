"""Unit tests of the time service."""
