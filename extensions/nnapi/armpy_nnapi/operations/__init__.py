"""Every NNAPI operation: its operands, which types go together, and how it is lowered.

Each module has its operations in its ``DEFINITIONS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from armpy.core.lazy import ModuleTables
from armpy_nnapi.operations.definition import OperationDefinition as OperationDefinition
from armpy_nnapi.operations.form import Argument as Argument
from armpy_nnapi.operations.form import Arguments as Arguments
from armpy_nnapi.operations.form import Form as Form
from armpy_nnapi.operations.form import Match as Match
from armpy_nnapi.operations.form import TypeRow as TypeRow


@cache
def definitions() -> Mapping[int, OperationDefinition]:
    """Every operation's definition by code."""
    by_code = {
        definition.code: definition
        for family in ModuleTables(__name__, "DEFINITIONS").modules()
        for definition in family.DEFINITIONS
    }
    return MappingProxyType(dict(sorted(by_code.items())))
