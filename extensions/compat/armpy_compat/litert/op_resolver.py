"""OpResolverType: which kernels LiteRT would run."""

from __future__ import annotations

import enum


@enum.unique
class OpResolverType(enum.Enum):
    """Kinds of kernels; BUILTIN_REF is armpy's CpuRef, and the others are what is installed."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3
