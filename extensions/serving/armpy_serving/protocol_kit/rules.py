"""Rules of the kit: what each one asks of a server, and how it is tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from armpy.core.dataclass import dataclass
from armpy_serving.contents import Array
from armpy_serving.protocol_kit.answers import require

if TYPE_CHECKING:
    from armpy_serving.protocol_kit.target import TriedServer


class InapplicableRuleError(Exception):
    """A rule that this server or model is not asked to keep; the text says why."""


@dataclass(frozen=True, slots=True)
class ProtocolRule:
    """A rule and its trial."""

    id: str
    trial: Callable[[TriedServer], None]
    """Raises `BrokenRuleError`, or `InapplicableRuleError`."""


def require_equal(actual: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    """Check that outputs are those of the plain request, but for the last digits of floats."""
    require({*actual} == {*expected}, f"outputs {sorted(actual)}, expected {sorted(expected)}")
    for name, array in expected.items():
        other = actual[name]
        require(
            (other.dtype, other.shape) == (array.dtype, array.shape),
            f"'{name}' is {other.dtype}{[*other.shape]}, expected {array.dtype}{[*array.shape]}",
        )
        is_float = array.dtype.kind == "f"
        same = (
            np.allclose(other, array, 1e-4, 1e-5, equal_nan=True)
            if is_float
            else np.array_equal(other, array)
        )
        require(same, f"'{name}' has other elements than in the answer to plain JSON")


def applies(condition: object, reason: str) -> None:
    """Raise `InapplicableRuleError` unless a rule applies."""
    if not condition:
        raise InapplicableRuleError(reason)
