"""Unit tests of topics."""
