"""Arguments that no function expects, for sizes, counts and times."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from armpy.errors import ArmpyError

ODD: list[object] = [
    *(-1, -(2**70), 2**62, 2**63, 2**70, True, 1.5, float("nan"), float("inf"), "3", None, [1]),
    *(np.int64(-5), np.float32(2), np.float32(np.nan), np.bool_(True), object()),
]


def refuses_or_uses(call: Callable[[object], object]) -> None:
    """Check that every odd argument is used, or refused as such."""
    for argument in ODD:
        with suppress(ArmpyError):
            call(argument)
