"""Imported inputs and outputs are used where they lie, and nothing is copied for them."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armpy import ImportedTensor
from armpy.backend import ExternalMemory, MemorySource
from armpy.errors import (
    BackendError,
    InvalidArgumentError,
    MemoryExportError,
    MemoryImportError,
)
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import BinaryOperation, ElementwiseBinary, Reshape
from armpy.ops.operation import Array
from armpy_testing.backends.device_memory import ImportingDevice, raising, shared
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.effort import effort
from armpy_testing.models.networks import ADD, RELU, chain, f32, floats, i32
from armpy_testing.systems import NEEDS_SHARED_MEMORY

SUB = ElementwiseBinary(BinaryOperation.SUB)
MAX = ElementwiseBinary(BinaryOperation.MAXIMUM)
X = floats(-1, 0, 2, 5)


def elements(memory: ExternalMemory) -> list[float]:
    """What is in shared memory."""
    numbers: list[float] = memory.map().view(np.float32).tolist()
    return numbers


def dsp(sources: MemorySource = MemorySource.SHARED_MEMORY) -> ImportingDevice:
    return ImportingDevice("Dsp", [BinaryOperation.SUB], sources)


def fork() -> Graph:
    """``y = x + 1`` for one device, ``z = x - 1`` for another, ``m = max(x, 1)`` for the host."""
    net = Network()
    x = net.input("x", f32(4))
    unit = net.constant(np.float32(1))
    for name, operation in (("y", ADD), ("z", SUB), ("m", MAX)):
        net.output(name, net.add(operation, x, unit, name=name))
    return net.build()


# Host backends


def test_an_array_can_be_given_as_memory() -> None:
    array, result = X.copy(), bytearray(16)
    with Model(chain(3), runtime_of()) as model:
        x = model.import_inputs({"x": array})["x"]
        y = model.import_outputs({"y": result})["y"]
        model.run({"x": x}, {"y": y})
    assert np.frombuffer(result, np.float32).tolist() == (X + 3).tolist()


@pytest.mark.parametrize("wrong", [X[:3], X.astype(np.float64), X[::-1], None, [1, 2, 3, 4]])
def test_what_would_have_to_be_converted_is_not_imported(wrong: object) -> None:
    text = r"^input 'x': this cannot be imported. Expected an ExternalMemory, or a C-contiguous"
    with (
        Model(chain(3), runtime_of()) as model,
        pytest.raises(InvalidArgumentError, match=text),
    ):
        model.import_inputs({"x": wrong})


# A device


@NEEDS_SHARED_MEMORY
def test_a_device_copies_nothing_of_what_it_imports() -> None:
    npu = ImportingDevice()
    with Model(chain(3), runtime_of(npu)) as model:
        np.testing.assert_array_equal(model(X), X + 3)
        assert npu.transfers == (1, 1)
        source, target = shared(X), shared(np.zeros(4, np.float32))
        x = model.import_inputs({"x": source})["x"]
        y = model.import_outputs({"y": target})["y"]
        assert [(read, write) for _, read, write in npu.imported] == [(True, False), (False, True)]
        for number in range(3):
            source.map().view(np.float32)[:] = number
            assert model.run({"x": x}, {"y": y}) == {"y": y}
            assert elements(target) == [number + 3] * 4
        assert npu.transfers == (0, 0)
        # Each beside an array.
        np.testing.assert_array_equal(model.run({"x": x})["y"], [5] * 4)
        assert npu.transfers == (0, 1)
        model.run({"x": X}, {"y": y})
        assert elements(target) == (X + 3).tolist()
        assert npu.transfers == (1, 0)
        np.testing.assert_array_equal(model(X), X + 3)
        assert len(npu.imported) == 2


@NEEDS_SHARED_MEMORY
def test_bound_executions_use_imported_memory() -> None:
    npu = ImportingDevice()
    with Model(chain(3), runtime_of(npu)) as model:
        source, target = shared(X), shared(np.zeros(4, np.float32))
        x = model.import_inputs({"x": source})["x"]
        y = model.import_outputs({"y": target})["y"]
        execution = model.bind({"x": x}, {"y": y})
        for number in range(3):
            source.map().view(np.float32)[:] = number
            assert execution() == {"y": y}
            assert elements(target) == [number + 3] * 4
        assert npu.transfers == (0, 0)
        y.close()
        with pytest.raises(InvalidArgumentError, match="output 'y': the imported tensor is closed"):
            execution()


@NEEDS_SHARED_MEMORY
def test_backends_that_can_import_do_and_the_others_get_a_copy() -> None:
    expected = {"y": (X + 1).tolist(), "z": (X - 1).tolist(), "m": [1, 1, 2, 5]}
    for can_import in (True, False):
        npu, other = ImportingDevice(), dsp()
        other.refusal = "" if can_import else "not from there"
        with Model(fork(), runtime_of(npu, other)) as model:
            x = model.import_inputs({"x": shared(X)})["x"]
            assert x.backends == ("Npu", *(["Dsp"] if can_import else []), "CpuRef")
            results = model.run({"x": x})
            assert {name: array.tolist() for name, array in results.items()} == expected
            assert npu.transfers == (0, 1 if can_import else 2)  # the result, and the copy
            assert other.transfers == (0 if can_import else 1, 1)


# Refusals


@NEEDS_SHARED_MEMORY
def test_a_refusal_names_the_tensor_the_backend_and_the_reason() -> None:
    npu = ImportingDevice()
    npu.refusal = "the moon is in the wrong phase"
    with Model(chain(3), runtime_of(npu)) as model:
        text = "'{}' / Npu: the moon is in the wrong phase"
        with pytest.raises(MemoryImportError, match="^input " + text.format("x")):
            model.import_inputs({"x": shared(X)})
        with pytest.raises(MemoryExportError, match="^output " + text.format("y")):
            model.import_outputs({"y": shared(X)})
        np.testing.assert_array_equal(model(X), X + 3)
        assert (npu.imported, npu.unimported) == ([], [])


@NEEDS_SHARED_MEMORY
def test_one_that_raises_after_all_is_named() -> None:
    npu = ImportingDevice()
    with Model(chain(3), runtime_of(npu)) as model:
        npu.fault = raising()
        text = "^input 'x' / Npu / Npu / import_memory / bus: the bus is too narrow"
        with pytest.raises(MemoryImportError, match=text):
            model.import_inputs({"x": shared(X)})
        npu.fault = ValueError("oops")
        with pytest.raises(BackendError, match=r"^Npu / import_memory: .*oops"):
            model.import_inputs({"x": shared(X)})


@NEEDS_SHARED_MEMORY
def test_memory_that_is_too_short_or_read_only_is_refused_by_the_host() -> None:
    with Model(chain(3), runtime_of()) as model:
        memory = shared(X)
        too_late = ExternalMemory.of_file_descriptor(memory.file_descriptor, 16, offset_bytes=4)
        with pytest.raises(MemoryImportError, match=r"CpuRef: the file has 16 bytes"):
            model.import_inputs({"x": too_late})
        odd = ExternalMemory.of_file_descriptor(memory.file_descriptor, 16, offset_bytes=2)
        with pytest.raises(MemoryImportError, match=r"CpuRef: .*aligned to whole elements"):
            model.import_inputs({"x": odd})
        constant = X.copy()
        constant.setflags(write=False)
        assert model(model.import_inputs({"x": constant})["x"]) is not None
        with pytest.raises(MemoryExportError, match=r"^output 'y' / CpuRef / .*read-only"):
            model.import_outputs({"y": constant})


@NEEDS_SHARED_MEMORY
def test_all_are_imported_or_none() -> None:
    net = Network()
    a, b = net.input("a", f32(4)), net.input("b", f32(4))
    net.output("y", net.add(ADD, a, b))
    npu = ImportingDevice()
    with Model(net.build(), runtime_of(npu)) as model:
        with pytest.raises(MemoryImportError, match="input 'b'"):
            model.import_inputs({"a": shared(X), "b": shared(X[:1])})
        assert [handle for handle, *_ in npu.imported] == npu.unimported
        assert len(npu.unimported) == 1
        with pytest.raises(InvalidArgumentError, match=r"no such input. Expected a, b; got 'c'"):
            model.import_inputs({"a": shared(X), "c": shared(X)})
        with pytest.raises(InvalidArgumentError, match=r"no such output. Expected y; got 'a'"):
            model.import_outputs({"a": shared(X)})


@NEEDS_SHARED_MEMORY
def test_a_network_whose_shapes_depend_on_values_imports_nothing() -> None:
    net = Network()
    x, shape = net.input("x", f32(4)), net.input("shape", i32(2))
    net.output("y", net.add(Reshape(), net.add(ADD, x, x), shape))
    with (
        Model(net.build(), runtime_of()) as model,
        pytest.raises(MemoryImportError, match="shapes of the network depend on values"),
    ):
        model.import_inputs({"x": shared(X)})


# The end


def imported_by(npu: ImportingDevice) -> Model:
    return Model(chain(3), runtime_of(npu))


@NEEDS_SHARED_MEMORY
@pytest.mark.sampled(5)
@pytest.mark.parametrize("way", ["close", "with", "drop", "model", "twice"])
def test_a_backend_ends_its_use_once(way: str) -> None:
    npu = ImportingDevice()
    model = imported_by(npu)
    x = model.import_inputs({"x": shared(X)})["x"]
    model(x)
    assert npu.unimported == []
    if way == "with":
        with x:
            pass
    elif way == "drop":
        x = None  # type: ignore[assignment]  # the only reference
        gc.collect()
    elif way == "model":
        model.close()
    else:
        x.close()
    if way == "twice":
        x.close()
        model.close()
    assert npu.unimported == [npu.imported[0][0]]
    del x
    gc.collect()
    assert len(npu.unimported) == 1


@NEEDS_SHARED_MEMORY
def test_a_closed_tensor_cannot_be_given() -> None:
    npu = ImportingDevice()
    with imported_by(npu) as model:
        x = model.import_inputs({"x": shared(X)})["x"]
        y = model.import_outputs({"y": shared(X)})["y"]
        for tensor in (x, y):
            tensor.close()
            assert tensor.is_closed
        with pytest.raises(
            InvalidArgumentError, match=r"^input 'x': the imported tensor is closed"
        ):
            model.run({"x": x})
        with pytest.raises(InvalidArgumentError, match=r"^output 'y': the imported tensor is cl"):
            model.run({"x": X}, {"y": y})
        np.testing.assert_array_equal(model(X), X + 3)


@NEEDS_SHARED_MEMORY
def test_one_that_is_closed_during_an_execution_is_used_to_its_end() -> None:
    npu = ImportingDevice()
    with imported_by(npu) as model:
        x = model.import_inputs({"x": shared(X)})["x"]
        handle = npu.imported[0][0]
        with x.in_use():  # as by an execution
            thread = threading.Thread(target=x.close)
            thread.start()
            thread.join()
            assert npu.unimported == []
        assert npu.unimported == [handle]


# Mistakes


@NEEDS_SHARED_MEMORY
def test_a_tensor_is_for_its_own_use_alone() -> None:
    npu = ImportingDevice()
    with imported_by(npu) as model, imported_by(npu) as other:
        x = model.import_inputs({"x": shared(X)})["x"]
        with pytest.raises(InvalidArgumentError, match="Got input 'x' of another model"):
            other.run({"x": x})
        with pytest.raises(InvalidArgumentError, match=r"output 'y'.*another use. Got input 'x'"):
            model.run({"x": X}, {"y": x})


@NEEDS_SHARED_MEMORY
def test_an_output_over_an_imported_input_is_refused() -> None:
    npu = ImportingDevice()
    with imported_by(npu) as model:
        memory = shared(np.zeros(8, np.float32))
        x = model.import_inputs({"x": memory})["x"]
        outputs = [
            ExternalMemory.of_file_descriptor(memory.file_descriptor, 16, offset_bytes=offset)
            for offset in (12, 16)
        ]
        over, beside = (model.import_outputs({"y": array})["y"] for array in outputs)
        with pytest.raises(InvalidArgumentError, match="overlaps an imported input"):
            model.run({"x": x}, {"y": over})
        model.run({"x": x}, {"y": beside})
        assert elements(memory) == [0] * 4 + [3] * 4


@NEEDS_SHARED_MEMORY
def test_it_is_an_array_to_numpy_and_other_libraries() -> None:
    npu = ImportingDevice()
    memory = shared(X)
    with imported_by(npu) as model:
        x = model.import_inputs({"x": memory})["x"]
        for array in (np.asarray(x), np.from_dlpack(x)):
            assert array.dtype == np.float32
            assert array.tolist() == X.tolist()
        np.asarray(x)[:] = 7
        assert elements(memory) == [7] * 4
        assert repr(x) == "ImportedTensor(input 'x', FLOAT32 (4,), Npu)"


def test_memory_that_was_not_imported_is_no_tensor() -> None:
    with Model(chain(3), runtime_of()) as model:
        with pytest.raises(InvalidArgumentError, match=r"^input 'x': .*Import it first"):
            model.run({"x": ExternalMemory.of_array(X)})
        with pytest.raises(InvalidArgumentError, match=r"^output 'y': .*Import it first"):
            model.run({"x": X}, {"y": ExternalMemory.of_array(X)})


@NEEDS_SHARED_MEMORY
def test_held_working_memory_and_reported_values_are_of_the_host() -> None:
    with Model(chain(3), runtime_of()) as model, model.create_working_memory() as memory:
        x = model.import_inputs({"x": shared(X)})["x"]
        assert memory.run({"x": x})["y"].tolist() == (X + 3).tolist()
    with imported_by(ImportingDevice()) as model, model.create_working_memory() as memory:
        x = model.import_inputs({"x": shared(X)})["x"]
        with pytest.raises(
            InvalidArgumentError, match=r"for executions with arrays\. Got an imported tensor"
        ):
            memory.run({"x": x})
        with pytest.raises(InvalidArgumentError, match="values are reported of executions with"):
            model.run({"x": x}, debug=print)


# Odd networks


OPERATIONS = {"add": ADD, "sub": SUB, "max": MAX, "relu": RELU}


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Networks whose layers lie on two devices and the host in any order."""
    net = Network()
    values: list[Value] = [net.input(f"x{i}", f32(4)) for i in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(1, 7))):
        operation = OPERATIONS[draw(st.sampled_from(sorted(OPERATIONS)))]
        read = [draw(st.sampled_from(values)) for _ in range(1 if operation is RELU else 2)]
        values.append(net.add(operation, *read))
    for i in range(draw(st.integers(1, 4))):
        net.output(f"y{i}", draw(st.sampled_from(values)))
    return net.build()


@pytest.mark.slow
@given(graphs(), st.data())
@settings(max_examples=effort(150, quick=40), deadline=None)
def test_results_are_those_of_plain_arrays_whatever_is_imported(
    graph: Graph, data: st.DataObject
) -> None:
    devices = [ImportingDevice(), dsp()]
    for device in devices:
        device.sources = data.draw(
            st.sampled_from([MemorySource.SHARED_MEMORY, MemorySource.DMA_BUF])
        )
    arrays = {
        value.name: np.arange(4, dtype=np.float32) - index
        for index, value in enumerate(graph.inputs)
    }
    with Model(graph, runtime_of()) as reference:
        expected = reference.run(arrays)
    with Model(graph, runtime_of(*devices)) as model:
        inputs: dict[str, Array | ImportedTensor] = dict(arrays)
        outputs: dict[str, ImportedTensor] = {}
        memories: dict[str, ExternalMemory] = {}
        for name in data.draw(st.sets(st.sampled_from(sorted(arrays)))):
            try:
                inputs |= model.import_inputs({name: shared(arrays[name])})
            except MemoryImportError:
                continue
        for name in data.draw(st.sets(st.sampled_from(sorted(expected)))):
            memories[name] = shared(np.zeros(4, np.float32))
            try:
                outputs |= model.import_outputs({name: memories[name]})
            except MemoryExportError:
                continue
        for _ in range(2):
            results = model.run(inputs, outputs)
            for name, right in expected.items():
                np.testing.assert_array_equal(np.asarray(results[name]), right, name)
