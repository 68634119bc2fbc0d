from __future__ import annotations

import subprocess
import sys

import pytest

import armpy

HEAVY = {
    "armpy_reference",
    "armpy_numba_acc",
    "numba",
    "llvmlite",
    "pluggy",
    "click",
    "rich",
    "PIL",
    "tflite",
    "flatbuffers",
    "hypothesis",
}


def modules_after(code: str) -> set[str]:
    """Top-level modules that a new interpreter has imported after running some code."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_importing_armpy_imports_nothing_heavy() -> None:
    assert modules_after("import armpy") & HEAVY == set()


def test_building_a_network_imports_nothing_heavy() -> None:
    code = (
        "from armpy import Network, TensorInfo, DataType, ops\n"
        "net = Network(); net.output('y', net.input('x', TensorInfo((1,), DataType.FLOAT32)))\n"
        "net.build()"
    )
    assert modules_after(code) & HEAVY == set()


def test_listing_backends_imports_none() -> None:
    code = "from armpy.plugins import BackendRegistry\nBackendRegistry.discover().candidates"
    assert modules_after(code) & HEAVY == set()


@pytest.mark.parametrize("name", armpy.__all__)
def test_everything_announced_is_there(name: str) -> None:
    assert getattr(armpy, name) is not None
    assert name in dir(armpy)


def test_operations_are_imported_when_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    operations = armpy.ops
    monkeypatch.delattr(armpy, "ops")
    assert armpy.ops is operations


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'armpy' has no attribute 'nonsense'"):
        _ = armpy.nonsense  # type: ignore[attr-defined]
