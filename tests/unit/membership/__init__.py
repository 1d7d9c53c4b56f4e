"""Membership: the exact effects of every message, alarm and command."""
