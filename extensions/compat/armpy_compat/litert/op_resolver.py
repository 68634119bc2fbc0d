"""OpResolverType: which kernels LiteRT would run."""

from __future__ import annotations

import enum


@enum.unique
class OpResolverType(enum.Enum):
    """Kinds of kernels; BUILTIN_REF is armpy's CpuRef, the others are the installed backends."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3
