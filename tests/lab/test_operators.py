"""Models of single operators, as the benchmark writes them for packs of kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

import armpy

pytest.importorskip("onnx")
pytest.importorskip("armpy_onnx")

from lab.benchmarks.operators import CASES, write_models


def test_each_case_of_an_operator_is_written_as_a_model_that_loads(tmp_path: Path) -> None:
    write_models(["Pow", "LayerNormalization"], tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["LayerNormalization_0.onnx", "Pow_0.onnx", "Pow_1.onnx", "Pow_2.onnx"]
    for name in names:
        armpy.load(tmp_path / name, backends=["CpuRef"]).close()


def test_operators_have_cases_with_names_of_their_own() -> None:
    for operator in ("Add", "Cast", "Transpose", "Where"):
        names = [case.name for case in CASES[operator]()]
        assert len(set(names)) == len(names)
