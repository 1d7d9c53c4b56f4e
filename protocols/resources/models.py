"""The four models (§4, Table 1): what kind of resources is asked for, and how often."""

from __future__ import annotations

from enum import StrEnum


class ModelType(StrEnum):
    """Marks every message, so that all models live in one system."""

    STATIC = "static"
    DYNAMIC = "dynamic"
    STATIC_CONTINUOUS = "static-continuous"
    DYNAMIC_CONTINUOUS = "dynamic-continuous"

    @property
    def resources(self) -> ModelType:
        """The model of the resources that such a request is about: static or dynamic."""
        static = self in (ModelType.STATIC, ModelType.STATIC_CONTINUOUS)
        return ModelType.STATIC if static else ModelType.DYNAMIC
