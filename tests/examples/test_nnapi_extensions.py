"""The example with vendor extensions: built, installed, used with nothing named, removed again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from armpy_testing.example_backends import install, own_tests, run_beside

pytestmark = pytest.mark.slow

APPLICATION = """
import struct
import numpy as np
from armpy_nnapi import Compilation, Model, OperandType, default_manager

FIBONACCI = "com.example.fibonacci"
devices = default_manager().devices
print("supported by", *[d.name for d in devices if d.get_extension_support(FIBONACCI)])

model = Model()
scalar = model.get_extension_operand_type(FIBONACCI, 0)
tensor = model.get_extension_operand_type(FIBONACCI, 1)
count = model.add_operand(OperandType(scalar))
numbers = model.add_operand(OperandType(tensor, (0,)))
model.set_operand_extension_data(numbers, struct.pack("<dq", 0.5, 10))
model.add_operation(model.get_extension_operation_type(FIBONACCI, 0), [count], [numbers])
model.identify_inputs_and_outputs([count], [numbers])
model.finish()
compilation = Compilation(model)
compilation.finish()
print(*compilation(np.array(7, np.int64))[0])
"""
"""Knows the extension by its name and numbers only, and no backend at all."""

DISAGREEING = """
from collections.abc import Sequence
from armpy.backend import BACKEND_API_VERSION, Extension, ExtensionOperandType
from armpy_example_extensions import ExampleExtensionsBackend


class Disagreeing(ExampleExtensionsBackend):
    def get_id(self):
        return "Disagreeing"

    @property
    def extensions(self):
        scalar = ExtensionOperandType(0, "INT64", is_tensor=False, size_bytes=4)
        return (Extension("com.example.fibonacci", (scalar,)),)


def get_backend_id():
    return "Disagreeing"


def get_version():
    return BACKEND_API_VERSION


def backend_factory():
    return Disagreeing()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install("nnapi_extensions", tmp_path_factory.mktemp("extensions"))


@pytest.fixture
def application(tmp_path: Path) -> Path:
    path = tmp_path / "application.py"
    path.write_text(APPLICATION)
    return path


def run(site: Path | None, application: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_beside(site, str(application), variables=variables)


def test_an_installed_extension_is_used_with_nothing_named(site: Path, application: Path) -> None:
    done = run(site, application)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["supported by ExampleExtensions", "12 12 14 16 20 26 36"]


def test_backends_that_disagree_disable_the_extension(
    site: Path, application: Path, tmp_path: Path
) -> None:
    modules = tmp_path / "modules"
    modules.mkdir(mode=0o755)
    (modules / "Vendor_Disagreeing_backend.py").write_text(DISAGREEING)
    done = run(site, application, ARMPY_DYNAMIC_BACKENDS_PATH=str(modules))
    assert done.returncode != 0
    assert done.stdout.splitlines() == ["supported by Disagreeing ExampleExtensions"]
    last = done.stderr.splitlines()[-1]
    assert "com.example.fibonacci: the vendor extension is disabled: " in last
    assert "Disagreeing and ExampleExtensions declare other operand types for it" in last


def test_the_example_passes_its_own_tests(site: Path) -> None:
    done = own_tests(site)
    assert done.returncode == 0, done.stdout + done.stderr
