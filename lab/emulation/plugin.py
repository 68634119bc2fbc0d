"""Lets a run of pytest test an emulated Arm processor's instruction sets instead of this one's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NoReturn

import pytest
from armpy_numba_acc.native import loader

from emulation.environment import default_environment
from emulation.remote import redirect, run_in_turn

VARIABLE = "ARMPY_EMULATED_ISAS"


def _skip(_: Mapping[str, bytes]) -> NoReturn:
    """Arm's code is nothing for this process."""
    pytest.skip("it runs compiled code in this process")


# Before any test asks which instruction sets there are, or takes a function for its own.
redirect(default_environment(), os.environ[VARIABLE].split(","))
loader.load_objects = _skip

from backends.numba_acc.tests import support  # noqa: E402

support.run_in_turn = run_in_turn
