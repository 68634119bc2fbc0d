"""Every NNAPI operation: what it takes, which types go together, and how it is lowered."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from armpy.nnapi.operations.definition import (
    Argument as Argument,
)
from armpy.nnapi.operations.definition import (
    Arguments as Arguments,
)
from armpy.nnapi.operations.definition import (
    Form as Form,
)
from armpy.nnapi.operations.definition import (
    Match as Match,
)
from armpy.nnapi.operations.definition import (
    OperationDefinition as OperationDefinition,
)
from armpy.nnapi.operations.definition import (
    TypeRow as TypeRow,
)

FAMILIES: tuple[str, ...] = (
    "activation",
    "bidirectional",
    "blocks",
    "comparison",
    "conversion",
    "detection",
    "elementwise",
    "lookup",
    "lstm",
    "movement",
    "normalization",
    "padding",
    "pooling",
    "recurrent",
    "reduction",
    "region_pooling",
    "resizing",
    "slicing",
    "transpose_convolution",
    "weighted",
)
"""Modules of this package; each has its operations in ``DEFINITIONS``."""


@cache
def definitions() -> Mapping[int, OperationDefinition]:
    """Every operation's definition by code."""
    found: dict[int, OperationDefinition] = {}
    for family in FAMILIES:
        module = importlib.import_module(f"{__name__}.{family}")
        for definition in module.DEFINITIONS:
            found[definition.code] = definition
    return MappingProxyType(dict(sorted(found.items())))
