"""Elements in which a backend leaves CpuRef are counted, and the first wrong layer is named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import Network, RuntimeOptions
from armpy.ops import FullyConnected, Operation, Quantize, Softmax
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.differences.diff import after_floats
from armpy_testing.backends.fake_backends import FakeBackend, registry_of
from armpy_testing.backends.lying_backends import Tampering
from armpy_testing.shared import shared_files
from lab.comparison.equality import Bench, Conditions, Count
from lab.comparison.subjects import ModelFile, Selection, subjects

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def counted(backend: FakeBackend, threads: Sequence[int] = (1,), *, layers: bool = False) -> Count:
    registry = registry_of(backend, ReferenceBackend())
    conditions = [Conditions("", number) for number in threads]
    bench = Bench(
        conditions,
        layers=layers,
        backend=backend.get_id(),
        options=RuntimeOptions(registry=registry),
    )
    shape = (1, 16, 16, 1)
    image = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    return bench.count(ModelFile("digits", str(DIGITS), ((image,),)))[conditions[-1]]


def one_step_more(kind: type[Operation]) -> Tampering:
    def tamper(operation: Operation, _: list[Array], outputs: list[Array]) -> None:
        if isinstance(operation, kind):
            outputs[0].flat[3] += np.asarray(1, outputs[0].dtype)

    return Tampering(tamper, None)


def test_nothing_differs_of_an_honest_backend() -> None:
    count = counted(FakeBackend("Honest"), layers=True)
    assert count.is_equal
    assert count.elements > 3 * 10  # those of layers in between, too
    assert count.taken > 0


def test_one_step_in_one_element_is_counted_and_its_layer_named() -> None:
    count = counted(one_step_more(Softmax))
    assert (count.differing, count.steps) == (3, 1.0)  # with three sets of outputs
    assert "Softmax" in count.first
    assert not count.is_equal


@pytest.mark.slow
def test_a_layer_of_which_nothing_is_seen_is_found_where_all_layers_are_tried() -> None:
    liar = one_step_more(FullyConnected)
    unseen = counted(liar)
    assert unseen.differing == 0 or "FullyConnected" in unseen.first
    assert "FullyConnected" in counted(liar, layers=True).first


@pytest.mark.parametrize("is_inexact", [False, True])
def test_quantised_elements_after_sums_of_floats_need_not_be_equal(is_inexact: bool) -> None:
    net = Network()
    value = net.input("x", TensorInfo((1, 4), DataType.FLOAT32))
    if is_inexact:
        value = net.add(Softmax(), value, output=TensorInfo((1, 4), DataType.FLOAT32))
    info = TensorInfo((1, 4), DataType.QASYMM_S8, Quantization.per_tensor(0.1, 0))
    net.output("y", net.add(Quantize(), value, output=info))
    graph = net.build()
    assert (graph.outputs[0] in after_floats(graph.layers)) is is_inexact


SMALL = [
    *shared_files("models", "micro/*int8.tflite"),
    *shared_files("models", "micro/keyword_scrambled.tflite"),
    *shared_files("models", "mlperf_tiny/*int*.tflite"),
    *shared_files("models", "mlperf_tiny/pretrainedResnet_quant.tflite"),
]


@pytest.mark.slow
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_numbaacc_equals_cpuref_in_every_element_of_small_models(path: Path) -> None:
    conditions = [Conditions("", threads) for threads in (1, 2)]
    selection = Selection("models", 0, 0, 1, "", str(path.parents[2]), [str(path)])
    (subject,) = subjects(selection)
    for count in Bench(conditions).count(subject).values():
        assert count.elements > 0
        assert count.is_equal, count.first


def test_a_negative_zero_is_not_zero_and_all_nans_are_one() -> None:
    count = Count()
    array = np.array([0.0, np.nan, 1.0], np.float32)
    count.add(array, np.array([-0.0, -np.nan, 1.0], np.float32), is_after_floats=False)
    assert (count.elements, count.differing) == (3, 1)
