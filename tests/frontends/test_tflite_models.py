"""Real models parse, whole and without copies."""

from __future__ import annotations

from armpy_testing.shared import shared_file
from tests.support.tflite_files import parsed


def test_open_batch_has_the_size_1_by_default() -> None:
    graph = parsed(shared_file("models", "keras", "mobilenet_v2_1.0_224_int8.tflite"))
    assert graph.inputs[0].info.shape == (None, 224, 224, 3)
    assert graph.default_shapes == ((1, 224, 224, 3),)
