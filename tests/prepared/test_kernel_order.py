"""Commands call kernels by their numbers, whatever order their code was found in."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import armpy
from armpy.ops import PreCompiled
from armpy.store.archive.container import open_container
from tests.support.example_backends import DIGITS

ahead = pytest.importorskip("armpy_numba_acc.ahead")


def kernels_of(path: Path) -> list[object]:
    """The kernels of a file's first program that its commands name."""
    about = open_container(path).manifest["programs"][0]["about"]
    return list(about["kernels"][: about["own_kernels"]])


def test_kernels_are_numbered_as_commands_name_them_whatever_order_their_code_comes_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with armpy.load(shutil.copy(DIGITS, tmp_path / "digits.tflite"), num_threads=1) as model:
        latest = model.handle.loaded.latest
        assert latest is not None
        (layer,) = latest.plan.layers
        assert isinstance(layer.operation, PreCompiled)
        program = layer.operation.program
        expected = [[kernel.name, *kernel.parameters] for kernel in program.kernels]
        objects_of = ahead.objects_of

        def backwards(*arguments: object) -> Mapping[object, bytes]:
            return dict(reversed(objects_of(*arguments).items()))

        monkeypatch.setattr(ahead, "objects_of", backwards)
        model.save(tmp_path / "digits.armpy")
    assert kernels_of(tmp_path / "digits.armpy") == expected
