"""A network that is loaded with import and export sources imports in every call."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import NetworkProperties
from armpy.backend import ExternalMemory, MemorySource
from armpy.errors import InvalidArgumentError, MemoryExportError, MemoryImportError
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_testing.backends.device_memory import ImportingDevice, shared
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of
from armpy_testing.models.networks import chain, floats
from armpy_testing.systems import NEEDS_SHARED_MEMORY

MALLOC, SHARED = MemorySource.MALLOC, MemorySource.SHARED_MEMORY
X = floats(-1, 0, 2, 5)


def loaded(
    *backends: FakeBackend,
    input_source: MemorySource = MemorySource.UNDEFINED,
    output_source: MemorySource = MemorySource.UNDEFINED,
) -> Model:
    properties = NetworkProperties(input_source=input_source, output_source=output_source)
    return Model(chain(3), runtime_of(*backends), properties=properties)


def elements(memory: ExternalMemory) -> list[float]:
    numbers: list[float] = memory.map().view(np.float32).tolist()
    return numbers


@NEEDS_SHARED_MEMORY
def test_a_device_imports_in_every_call_and_copies_nothing() -> None:
    npu = ImportingDevice()
    with loaded(npu, input_source=SHARED, output_source=SHARED) as model:
        for number in range(3):
            source, target = shared(X + number), shared(np.zeros(4, np.float32))
            results = model.run({"x": source}, {"y": target})
            assert results == {"y": target}
            assert elements(target) == (X + number + 3).tolist()
            assert len(npu.imported) == 2 * (number + 1)
            assert {handle for handle, *_ in npu.imported} == set(npu.unimported)
        assert npu.transfers == (0, 0)
        assert len(npu.unimported) == 6


@pytest.mark.parametrize("given", [X.astype(np.float64), X.astype(">f4"), floats(*range(8))[::2]])
def test_an_array_that_would_be_converted_is_an_error(given: Array) -> None:
    with loaded(input_source=MALLOC, output_source=MALLOC) as model:
        text = r"^input 'x': .*would have to be converted. Expected FLOAT32 \(4,\) in C order"
        with pytest.raises(MemoryImportError, match=text):
            model(given)
        with pytest.raises(MemoryExportError, match=r"^output 'y': .*would have to be converted"):
            model.run({"x": X}, {"y": given})
        np.testing.assert_array_equal(model(X), X + 3)


@NEEDS_SHARED_MEMORY
def test_memory_of_another_kind_is_an_error() -> None:
    with loaded(input_source=SHARED, output_source=SHARED) as model:
        with pytest.raises(MemoryImportError, match=r"^input 'x': .*SHARED_MEMORY"):
            model(X)
        with pytest.raises(MemoryExportError, match=r"^output 'y': .*memory of the process"):
            model.run({"x": shared(X)}, {"y": X})
        dma = ExternalMemory.of_file_descriptor(0, 16, source=MemorySource.DMA_BUF)
        with pytest.raises(MemoryImportError, match=r"kind MemorySource.DMA_BUF"):
            model(dma)
        with pytest.raises(MemoryImportError, match="memory of a list cannot be imported"):
            model([1, 2, 3, 4])


@NEEDS_SHARED_MEMORY
def test_a_refusal_is_an_error_of_the_call() -> None:
    npu = ImportingDevice()
    with loaded(npu, input_source=SHARED, output_source=SHARED) as model:
        npu.refusal = "not today"
        with pytest.raises(MemoryImportError, match=r"^input 'x' / Npu: not today"):
            model.run({"x": shared(X)})
        npu.refusal = ""
        with pytest.raises(MemoryExportError, match=r"^output 'y' / Npu: the memory is too small"):
            model.run({"x": shared(X)}, {"y": shared(X[:3])})
        np.testing.assert_array_equal(model(shared(X)), X + 3)
        assert {handle for handle, *_ in npu.imported} == set(npu.unimported)


@NEEDS_SHARED_MEMORY
def test_imported_tensors_are_used_as_they_are() -> None:
    npu = ImportingDevice()
    with loaded(npu, input_source=SHARED) as model:
        x = model.import_inputs({"x": shared(X)})["x"]
        for _ in range(2):
            np.testing.assert_array_equal(model(x), X + 3)
        assert len(npu.imported) == 1


@NEEDS_SHARED_MEMORY
def test_open_shapes_follow_arrays_and_have_to_be_prepared_for_memory() -> None:
    properties = NetworkProperties(input_source=MALLOC | SHARED)
    with Model(chain(3, (None,)), runtime_of(), properties=properties) as model:
        with pytest.raises(InvalidArgumentError, match=r"no shape yet.*Model\.prepare"):
            model(shared(X))
        np.testing.assert_array_equal(model(X[:2]), X[:2] + 3)
        np.testing.assert_array_equal(model(shared(X[:2])), X[:2] + 3)
        np.testing.assert_array_equal(model(X), X + 3)
