"""Served models answer bit for bit as `armpy.load` does, whatever way a request comes."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import ArmpyError, Model
from armpy.execution import TensorSpec
from armpy_serving import status_of

from .inference_calls import (
    WAYS,
    Arrays,
    CallError,
)
from .kserve_server import KServeProcess

pytest.importorskip("kserve", reason="kserve is not installed")


def test_small_models_answer_in_every_way(server: KServeProcess, small_models: Path) -> None:
    with armpy.load(small_models / "mixed.armpy") as model:
        for rows in (0, 1, 5):
            check_all_ways(server, "mixed", model, inputs_of(model, rows))
    with armpy.load(small_models / "halves.armpy") as model:
        check_all_ways(server, "halves", model, inputs_of(model, 3), {"typed"})


def check_all_ways(
    server: KServeProcess, name: str, model: Model, inputs: Arrays, without: Set[str] = frozenset()
) -> int:
    """Compare the answers of all ways; inputs that the model refuses must be refused as well."""
    calls = 0
    for way, call in WAYS.items():
        if way in without:
            continue
        # Once for each, as there are models that have states.
        try:
            expected = model.run(inputs)
        except ArmpyError as error:
            status = status_of(error)
            with pytest.raises(CallError, match=f"{status.http}|{status.grpc}"):
                call(server, name, inputs)
            continue
        if way == "JSON" and not all(np.isfinite(array).all() for array in expected.values()):
            with pytest.raises(CallError, match="JSON cannot say"):
                call(server, name, inputs)
            continue
        answers = call(server, name, inputs)
        assert {*answers} == {*expected}, f"{name} by {way}"
        for output, array in expected.items():
            answer = answers[output]
            assert (answer.dtype, answer.shape) == (array.dtype, array.shape), f"{name} by {way}"
            assert answer.tobytes() == array.tobytes(), f"{name} by {way}: {output}"
        calls += 1
    return calls


def inputs_of(model: Model, rows: int) -> Arrays:
    """Random inputs; open dimensions are `rows`."""
    random = np.random.default_rng(rows)
    return {spec.name: random_array(spec, rows, random) for spec in model.inputs}


def random_array(
    spec: TensorSpec, rows: int, random: np.random.Generator
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """A random array for an input."""
    dims = (2,) if spec.shape is None else tuple(rows if n is None else n for n in spec.shape)
    dtype = np.dtype(spec.data_type.dtype)
    if dtype.kind == "f":
        return random.normal(size=dims).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, dims).astype(dtype)
    low, high = (-100, 100) if spec.data_type.is_quantized and dtype.kind == "i" else (0, 4)
    return random.integers(low, high, dims).astype(dtype)
