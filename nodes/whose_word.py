"""Whose word counts where several nodes tell of one thing: for commands and the dashboard."""

from typing import Any


def first_of_each_zone(views: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One view for each zone, of its first node: the others see the same, soon."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for view in views:
        found.setdefault((view["overlay"], view["zone"]), view)
    return list(found.values())


def best_of_each_overlay(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One table for each overlay: a delegate's, which is first-hand, before a plain member's."""
    found: dict[str, dict[str, Any]] = {}
    for table in sorted(tables, key=lambda one: not one["delegate"]):
        found.setdefault(table["overlay"], table)
    return list(found.values())
