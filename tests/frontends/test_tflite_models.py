"""Real models parse, whole and without copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy_testing.shared import FAMILIES, shared_file, shared_files
from tests.support.tflite_files import parsed, signatures_of

MODELS = [path for family in FAMILIES for path in shared_files("models", f"{family}/*.tflite")]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_real_model_becomes_a_network_whose_constants_are_views_of_the_file(path: Path) -> None:
    graph = parsed(path)
    constants = [value for value in graph.values() if value.data is not None]
    assert graph.layers
    assert constants or path.stem == "simple_add_model"
    for value in constants:
        assert value.data is not None
        assert not value.data.flags.owndata
        assert not value.data.flags.writeable


def test_names_of_a_signature() -> None:
    path = shared_file("models", "micro", "hello_world_int8.tflite")
    (signature,) = signatures_of(path).values()
    built = parsed(path, signature=signature.name)
    assert [value.name for value in built.inputs] == list(signature.inputs)
    assert list(built.output_names) == list(signature.outputs)


def test_lstm_keeps_its_two_states() -> None:
    graph = parsed(shared_file("models", "micro", "trained_lstm_int8.tflite"))
    layer = next(layer for layer in graph.layers if layer.operation.name.endswith("Lstm"))
    assert [variable.next_value for variable in graph.variables] == list(layer.outputs[:2])


def test_open_batch_has_the_size_1_by_default() -> None:
    graph = parsed(shared_file("models", "keras", "mobilenet_v2_1.0_224_int8.tflite"))
    assert graph.inputs[0].info.shape == (None, 224, 224, 3)
    assert graph.default_shapes == ((1, 224, 224, 3),)
