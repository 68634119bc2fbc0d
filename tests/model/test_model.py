from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from armpy.errors import BackendError, InvalidArgumentError
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import (
    CountingManager,
    FakeBackend,
    Handles,
    Outputs,
    OwnMemoryBackend,
    Step,
    runtime_of,
)
from armpy_testing.models.networks import (
    ADD,
    RELU,
    chain,
    diamond,
    f32,
    floats,
)


def two_sums() -> Graph:
    """``sum = a + b`` and ``double = a + a`` on vectors of 2."""
    net = Network()
    a, b = net.input("a", f32(2)), net.input("b", f32(2))
    net.output("sum", net.add(ADD, a, b, name="sum"))
    net.output("double", net.add(ADD, a, a, name="double"))
    return net.build()


def counter(shape: tuple[int, ...] = (2,)) -> Graph:
    """``total = state = state + x``, beginning with 0."""
    net = Network()
    x = net.input("x", f32(*shape))
    state = net.variable("state", f32(*shape))
    total = net.add(ADD, state, x)
    net.assign(state, total)
    net.output("total", total)
    return net.build()


@pytest.fixture
def model() -> Model:
    return Model(two_sums(), runtime_of())


def test_one_output_is_returned_bare_and_several_as_a_tuple(model: Model) -> None:
    np.testing.assert_array_equal(Model(chain(1), runtime_of())(floats(0, 1, 2, 3)), [1, 2, 3, 4])
    total, double = model(floats(1, 2), floats(10, 20))
    np.testing.assert_array_equal(total, [11, 22])
    np.testing.assert_array_equal(double, [2, 4])


def test_specs_say_what_goes_in_and_out() -> None:
    info = TensorInfo((None, 2), DataType.QASYMM_U8, Quantization.per_tensor(0.5, 3))
    net = Network()
    net.output("y", net.add(RELU, net.input("x", info)))
    model = Model(net, runtime_of())
    (x,), (y,) = model.inputs, model.outputs
    assert (x.name, x.shape, x.data_type) == ("x", (None, 2), DataType.QASYMM_U8)
    assert (y.name, y.quantization) == ("y", info.quantization)
    assert model.placement is None
    assert len(model.graph.layers) == 1


def test_tensors_are_found_by_name_and_by_position(model: Model) -> None:
    inputs = model.inputs
    assert inputs["b"] is inputs[1] is inputs[-1]
    assert model.outputs["double"].name == "double"
    assert [spec.name for spec in inputs[:1]] == ["a"]
    text = r"Expected 'sum', 'double'; got 'dubble'\. Did you mean 'double'"
    with pytest.raises(InvalidArgumentError, match=text):
        model.outputs["dubble"]
    with pytest.raises(IndexError):
        inputs[2]


@pytest.mark.parametrize("name", ["net.tflite", "net.ONNX", "folder.armpy/net.armnn"])
def test_a_name_of_another_kind_of_file_is_refused_for_a_compiled_model(
    model: Model, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    right = re.escape(str(path.with_suffix(".armpy")))
    with pytest.raises(InvalidArgumentError, match=f"another kind of file.*Save it as '{right}'"):
        model.save(path)
    assert not path.exists()


A, B = floats(1, 2), floats(10, 20)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: m(A), r"number of inputs is wrong. Expected 2: a \(2,\), b \(2,\); got 1"),
        (lambda m: m.run({"a": A, "c": B}), "inputs: missing 'b'; unknown 'c'"),
        (lambda m: m.run([A, B]), "inputs are not given by name.*got list"),
        (lambda m: m(A, floats(1)), r"input 'b'.*Expected \(2,\); got \(1,\)"),
        (lambda m: m(A, np.array([1.0, 2.0])), r"input 'b'.*Expected float32"),
        (lambda m: m.run({"a": A, "b": B}, {"sum": floats(1)}), "output 'sum'.*cannot take"),
    ],
)
def test_a_wrong_call_is_one_clear_error_and_the_model_works_afterwards(
    model: Model, call: Callable[[Model], object], text: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        call(model)
    np.testing.assert_array_equal(model(A, B)[0], [11, 22])


def test_inputs_are_never_written_to(model: Model) -> None:
    a = floats(1, 2)
    a.setflags(write=False)
    model(a, a)
    np.testing.assert_array_equal(a, [1, 2])


def test_real_numbers_are_quantised_on_request() -> None:
    info = TensorInfo((2,), DataType.QASYMM_U8, Quantization.per_tensor(0.5, 10))
    net = Network()
    net.output("y", net.add(RELU, net.input("x", info)))
    real = floats(-1, 1)
    model = Model(net, runtime_of(), quantize_inputs=True)
    np.testing.assert_array_equal(model(real), [10, 12])
    np.testing.assert_array_equal(model(np.array([8, 12], np.uint8)), [10, 12])
    with pytest.raises(InvalidArgumentError, match="quantize_inputs=True"):
        Model(net, runtime_of())(real)


def test_outputs_are_written_to_the_callers_arrays(model: Model) -> None:
    out = floats(0, 0)
    results = model.run({"a": A, "b": B}, {"double": out})
    assert results["double"] is out
    np.testing.assert_array_equal(out, [2, 4])
    np.testing.assert_array_equal(results["sum"], [11, 22])


def test_an_output_may_be_written_over_an_input(model: Model) -> None:
    a = floats(1, 2)
    results = model.run({"a": a, "b": B}, {"sum": a})
    np.testing.assert_array_equal(a, [11, 22])
    np.testing.assert_array_equal(results["double"], [2, 4])


def test_output_arrays_that_overlap_each_other_are_rejected(model: Model) -> None:
    out = floats(0, 0)
    with pytest.raises(InvalidArgumentError, match=r"output arrays overlap. Got 'sum', 'double'"):
        model.run({"a": A, "b": B}, {"sum": out, "double": out})


def passing_through() -> Graph:
    """Outputs that no layer writes, or that are one value under two names."""
    net = Network()
    x = net.input("x", f32(2))
    y = net.add(ADD, x, x)
    net.output("x", x)
    net.output("y", y)
    net.output("y_again", y)
    net.output("x_again", x)
    net.output("constant", net.constant(floats(5, 6)))
    return net.build()


@pytest.mark.parametrize("backend", [None, OwnMemoryBackend()])
def test_outputs_can_be_inputs_constants_or_repeated(backend: FakeBackend | None) -> None:
    model = Model(passing_through(), runtime_of(*[backend] if backend else []))
    x = floats(1, 2)
    outs = {"y_again": floats(0, 0), "constant": floats(0, 0), "x": floats(0, 0)}
    for results in (model.run({"x": x}), model.run({"x": x}, outs)):
        for name, expected in zip(results, ([1, 2], [2, 4], [2, 4], [1, 2], [5, 6]), strict=True):
            np.testing.assert_array_equal(results[name], expected)
        results["x"][:] = results["constant"][:] = results["y"][:] = 99
        np.testing.assert_array_equal(x, [1, 2])
        np.testing.assert_array_equal(results["y_again"], [2, 4])
    np.testing.assert_array_equal(model.run({"x": x})["constant"], [5, 6])
    np.testing.assert_array_equal(outs["y_again"], [2, 4])


def keyed(shape: tuple[int, ...], key: str | None) -> Network:
    """Hands out a variable of a key."""
    net = Network()
    net.output("y", net.variable("state", f32(*shape), key=key))
    return net


def test_networks_share_the_variables_of_one_key() -> None:
    runtime = runtime_of()
    adding = Network()
    state = adding.variable("total", f32(2), key="k")
    total = adding.add(ADD, adding.input("x", f32(2)), state)
    adding.assign(state, total)
    adding.output("total", total)
    first = Model(adding, runtime)
    reader, alone = (Model(keyed((2,), k), runtime, shares_state_with=first) for k in ("k", None))
    apart = Model(keyed((2,), "k"), runtime)
    first(floats(1, 2))
    np.testing.assert_array_equal(reader(), [1, 2])
    np.testing.assert_array_equal([alone(), apart()], [[0, 0], [0, 0]])


def test_models_on_two_runtimes_share_no_variables() -> None:
    first = Model(keyed((2,), "k"), runtime_of())
    with pytest.raises(InvalidArgumentError, match="on two runtimes cannot share variables"):
        Model(keyed((2,), "k"), runtime_of(), shares_state_with=first)


def test_a_shared_variable_is_of_one_shape() -> None:
    runtime = runtime_of()
    first = Model(keyed((2,), "k"), runtime)
    with pytest.raises(InvalidArgumentError, match=r"variable k.*\(2,\).*; got .*\(3,\)"):
        Model(keyed((3,), "k"), runtime, shares_state_with=first)


def test_later_executions_leave_results_alone_though_arrays_of_the_state_take_turns() -> None:
    model = Model(counter(), runtime_of())
    results = [model(floats(1, 2)) for _ in range(4)]
    model.reset_state()
    results += [model(floats(10, 10)) for _ in range(3)]
    expected = [[1, 2], [2, 4], [3, 6], [4, 8], [10, 10], [20, 20], [30, 30]]
    np.testing.assert_array_equal(results, expected)


def test_changing_a_result_does_not_change_the_state() -> None:
    model = Model(counter(), runtime_of())
    out = floats(0, 0)
    result = model.run({"x": floats(1, 1)}, {"total": out})["total"]
    result[:] = 50
    np.testing.assert_array_equal(model(floats(1, 1)), [2, 2])


def test_a_failed_execution_leaves_the_state_as_it_was() -> None:
    backend = FailingOnDemand()
    model = Model(counter(), runtime_of(backend))
    model(floats(1, 1))
    backend.fails = True
    with pytest.raises(BackendError, match="FailsOnDemand"):
        model(floats(1, 1))
    backend.fails = False
    np.testing.assert_array_equal(model(floats(1, 1)), [2, 2])


class FailingOnDemand(FakeBackend):
    """Its workloads raise as long as a test wants."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__("FailsOnDemand")
        self.fails = False
        self.error = error or ZeroDivisionError("oops")

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        if self.fails:
            raise self.error
        step.right.execute(inputs, outputs)


def test_a_workload_that_raises_is_named_with_its_layer_and_the_model_works_afterwards() -> None:
    backend = FailingOnDemand()
    model = Model(diamond(), runtime_of(backend))
    backend.fails = True
    text = r"FailsOnDemand / Activation 'top': the backend raised ZeroDivisionError\('oops'\)"
    for _ in range(3):
        with pytest.raises(BackendError, match=text) as caught:
            model(floats(1, 1, 1, 1))
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    backend.fails = False
    np.testing.assert_array_equal(model(floats(1, 1, 1, 1)), [5, 5, 5, 5])


def test_memory_that_cannot_be_acquired_is_an_error_and_the_rest_is_given_back() -> None:
    first, second = CountingManager(), CountingManager({"acquire": ValueError("full")})
    runtime = runtime_of(
        FakeBackend("A", {Activation}, memory_manager=first),
        FakeBackend("B", memory_manager=second),
    )
    model = Model(diamond(), runtime)
    for _ in range(2):
        with pytest.raises(BackendError, match=r"^B / acquire: .*ValueError\('full'\)"):
            model(floats(1, 1, 1, 1))
        assert (first.held, second.held) == (0, 0)


def test_a_closed_model_cannot_be_used_and_its_network_is_unloaded() -> None:
    with Model(chain(), runtime_of()) as model:
        model(floats(1, 1, 1, 1))
    model.close()
    uses: list[Callable[[], object]] = [
        lambda: model(floats(1, 1, 1, 1)),
        lambda: model.run({}),
        lambda: model.prepare({}),
        model.reset_state,
        lambda: model.inputs,
        lambda: model.placement,
    ]
    for use in uses:
        with pytest.raises(InvalidArgumentError, match=r"the model is closed.*Load it again"):
            use()
    with pytest.raises(InvalidArgumentError, match="no network is loaded"):
        model.runtime.get_network(model.network_id)
