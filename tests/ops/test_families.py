"""Operations are imported when they are used, and are all there all the same."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from armpy import ops

ROOT = Path(__file__).parents[2] / "armpy" / "ops"
SHARED = {"activations", "operation", "shapes"}  # they give some of what they have


def test_the_table_has_every_name_of_every_family() -> None:
    for path in ROOT.glob("*.py"):
        module = importlib.import_module(f"armpy.ops.{path.stem}") if path.stem[0] != "_" else None
        if module is not None and path.stem not in SHARED:
            assert sorted(getattr(module, "__all__", ())) == sorted(ops.FAMILIES.get(path.stem, ()))


@pytest.mark.parametrize("name", ops.__all__)
def test_every_name_is_what_its_family_defines(name: str) -> None:
    (family,) = [family for family, names in ops.FAMILIES.items() if name in names]
    found = getattr(ops, name)
    assert found is getattr(importlib.import_module(f"armpy.ops.{family}"), name)
    assert name in dir(ops)


def test_a_star_import_brings_them_all() -> None:
    names: dict[str, object] = {}
    exec("from armpy.ops import *", names)
    assert set(ops.__all__) <= set(names)


def test_operations_can_be_pickled() -> None:
    operation = ops.Convolution2d(stride=(2, 1), padding=ops.Padding.SAME)
    assert pickle.loads(pickle.dumps(operation)) == operation


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match=r"module 'armpy\.ops' has no attribute 'nonsense'"):
        _ = ops.nonsense  # type: ignore[attr-defined]


def test_one_operation_imports_its_family_alone() -> None:
    code = "import sys; from armpy.ops import Softmax; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = {name for name in done.stdout.split() if name.startswith("armpy.ops.")}
    assert "armpy.ops.activation_layers" in found
    assert not found & {"armpy.ops.convolution", "armpy.ops.lstm", "armpy.ops.detection"}
