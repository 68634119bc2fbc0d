"""The package as a whole."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys

import pytest

from armpy_nnapi import DurationCode, PreferenceCode
from armpy_nnapi.codes import DeviceTypeCode


def test_codes_are_the_numbers_of_neuralnetworks_h() -> None:
    durations = {code.name: code.value for code in DurationCode}
    assert durations == {
        "ON_HARDWARE": 0,
        "IN_DRIVER": 1,
        "FENCED_ON_HARDWARE": 2,
        "FENCED_IN_DRIVER": 3,
    }
    preferences = {code.name: code.value for code in PreferenceCode}
    assert preferences == {"LOW_POWER": 0, "FAST_SINGLE_ANSWER": 1, "SUSTAINED_SPEED": 2}
    devices = {code.name: code.value for code in DeviceTypeCode}
    assert devices == {"UNKNOWN": 0, "OTHER": 1, "CPU": 2, "GPU": 3, "ACCELERATOR": 4}


def test_importing_armpy_does_not_import_the_package() -> None:
    code = "import sys, armpy; assert not [m for m in sys.modules if m.startswith('armpy_nnapi')]"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
def test_importing_the_package_imports_only_what_is_used() -> None:
    code = (
        "import sys, armpy_nnapi; assert 'armpy.execution' not in sys.modules; "
        "armpy_nnapi.Model; assert 'armpy.execution' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("module", ["armpy_nnapi", "armpy_nnapi.model.builder"])
def test_the_examples_give_what_they_show(module: str) -> None:
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted > 0
    assert results.failed == 0
