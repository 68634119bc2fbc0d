from __future__ import annotations

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

from armpy.compiler.specialization import call_shapes_named
from armpy.errors import (
    InvalidArgumentError,
    LayerValidationError,
    ParserError,
    UnimplementedError,
)
from armpy.execution import LoadedNetwork
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.staged_program import LARGEST_KEY_ELEMENTS, StagedProgram
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import ExpandDims, Reshape, Squeeze
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import (
    CompilingBackend,
    runtime_of,
)
from armpy_testing.models.networks import (
    ADD,
    RELU,
    chain,
    f32,
    floats,
    i32,
    ints,
)


def loaded(model: Model) -> LoadedNetwork:
    return model.runtime.get_network(model.network_id)


def shape_given() -> Graph:
    """``y = relu(reshape(x + 1, shape + 0))``, the shape an input that a layer changes."""
    net = Network()
    x = net.input("x", f32(2, 3))
    shape = net.add(ADD, net.input("shape", i32(2)), net.constant(ints(0, 0)), name="layer")
    moved = net.add(ADD, x, net.constant(np.float32(1)), name="layer")
    net.output("y", net.add(RELU, net.add(Reshape(), moved, shape, name="layer"), name="layer"))
    net.output("shape_again", shape)
    net.output("moved", moved)
    return net.build()


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_default_shape_that_does_not_work_is_left_to_the_caller() -> None:
    net = Network()
    a = net.input("a", f32(None), default_shape=(2,))
    net.output("y", net.add(ADD, a, net.input("b", f32(3))))
    model = Model(net, runtime_of())
    assert model.placement is None
    np.testing.assert_array_equal(model(floats(1, 2, 3), floats(1, 1, 1)), [2, 3, 4])
    with pytest.raises(LayerValidationError, match="do not broadcast"):
        model(floats(1, 2), floats(1, 1, 1))
    np.testing.assert_array_equal(model(floats(1), floats(1, 1, 1)), [2, 2, 2])


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"z": (1,)}, "no such input. Expected 'x'; got 'z'"),
        ({"x": (1, 2)}, r"input 'x'.*\(\?, 3\); got \(1, 2\)"),
        ({}, "input 'x': an input has no shape yet"),
    ],
)
def test_a_shape_that_cannot_be_prepared_is_rejected(
    shapes: dict[str, tuple[int, ...]], text: str
) -> None:
    model = Model(chain(1, (None, 3)), runtime_of())
    with pytest.raises(InvalidArgumentError, match=text):
        model.prepare(shapes)
    model(np.zeros((1, 3), np.float32))


def test_shapes_of_the_file_are_not_the_calls() -> None:
    net = Network()
    net.output("y", net.add(RELU, net.input("a", f32(None), default_shape=(3,))))
    graph = net.build()
    for shape, is_named in {(3,): False, (4,): True}.items():
        with (
            pytest.raises(LayerValidationError) as caught,
            call_shapes_named(graph, [shape]),
        ):
            raise LayerValidationError("the window does not fit")
        assert ("of the call, 'a' (4,): choose others" in str(caught.value)) is is_named


def test_a_part_of_a_file_that_waits_for_shapes_does_not_blame_the_file() -> None:
    net = Network()
    net.output("y", net.add(RELU, net.input("a", f32(None))))
    with (
        pytest.raises(LayerValidationError) as caught,
        call_shapes_named(net.build(), [(4,)]),
    ):
        raise ParserError("the axis is not there", fix="Export the model again")
    assert str(caught.value) == (
        "the model does not take the shapes of the call, 'a' (4,): the axis is not there. "
        "Choose others."
    )
    # Nothing else is shown: the error says all that its cause did, but for the wrong fix.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.slow
def test_memory_does_not_grow_over_200_shapes() -> None:
    model = Model(chain(3, (None,)), runtime_of(CompilingBackend()))
    network = loaded(model)
    programs: list[weakref.ref[object]] = []
    tracemalloc.start()
    try:
        for size in range(1, 201):
            model(np.zeros(size, np.float32))
            programs.append(weakref.ref(network.program_cache.programs[((size,),)]))
            if size == 50:
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(network.program_cache.programs) == 8
    assert sum(program() is not None for program in programs) == 8
    # The compiler keeps what it was offered; that is a few hundred bytes per shape.
    assert grown < 2_000_000


def test_an_operand_that_does_not_fit_is_an_error_of_its_layer_and_the_model_works_on() -> None:
    model = Model(shape_given(), runtime_of())
    with pytest.raises(LayerValidationError, match=r"Reshape 'layer'.*for \(4, 4\); got 6"):
        model(X, ints(4, 4))
    np.testing.assert_array_equal(model(X, ints(6, 1))[0], (X + 1).reshape(6, 1))


def test_many_different_values_keep_the_cache_bounded() -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    net.output("y", net.add(ExpandDims(), x, net.add(ADD, *[net.input("axis", i32(1))] * 2)))
    model = Model(net, runtime_of(program_cache_size=3))
    for number in range(60):
        model(X, ints(number % 2))
    assert len(loaded(model).program_cache.programs) <= 3


def test_changing_a_result_does_not_change_a_program_that_was_made_from_it() -> None:
    net = Network()
    x = net.input("x", i32(2))
    shape = net.add(ADD, net.input("shape", i32(1)), net.constant(ints(0)))
    net.output("sum", net.add(ADD, net.add(Reshape(), x, shape), shape))
    net.output("shape", shape)
    model = Model(net, runtime_of())
    total, shape_out = model(ints(10, 20), ints(2))
    np.testing.assert_array_equal(total, [12, 22])
    shape_out[:] = 77
    np.testing.assert_array_equal(model(ints(10, 20), ints(2))[0], [12, 22])


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros((2, 3), np.float32), r"shape \(3, 2\); got float32 \(2, 3\)"),
        (np.zeros((3, 2)), r"shape \(\?, \?\); got float64 \(3, 2\)"),
        (np.zeros(6, np.float32), r"shape \(\?, \?\); got float32 \(6,\)"),
    ],
)
def test_arrays_that_do_not_fit_a_stepwise_networks_output_are_rejected(
    array: Array, text: str
) -> None:
    model = Model(shape_given(), runtime_of())
    with pytest.raises(InvalidArgumentError, match=text):
        model.run({"x": X, "shape": ints(3, 2)}, {"y": array})
    model(X, ints(3, 2))


def test_a_stepwise_network_keeps_state() -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    state = net.variable("x", f32(3, 2))  # of the same name as the input
    total = net.add(ADD, net.add(Reshape(), x, net.input("shape", i32(2))), state)
    net.assign(state, total)
    net.output("total", total)
    model = Model(net, runtime_of())
    for factor in (1, 2, 3):
        np.testing.assert_array_equal(model(X, ints(3, 2)), factor * X.reshape(3, 2))
    model.reset_state()
    np.testing.assert_array_equal(model(X, ints(3, 2)), X.reshape(3, 2))


def test_a_large_operand_that_decides_on_shapes_is_refused() -> None:
    net = Network()
    x = net.input("x", f32(1))
    net.output("y", net.add(Squeeze(), x, net.input("axes", i32(None))))
    model = Model(net, runtime_of())
    with pytest.raises(UnimplementedError, match="at most 4096 elements; got 4097"):
        model(floats(1), np.zeros(LARGEST_KEY_ELEMENTS + 1, np.int32))


def test_unknown_shapes_are_refused_with_the_layers_name() -> None:
    from armpy.ops import Activation

    class Unknown(Activation):
        """Gives no shape, whatever it reads."""

        __slots__ = ()

        def infer_shapes(self, inputs):  # type: ignore[no-untyped-def]  # as the base class
            return (None,)

    net = Network()
    net.output("y", net.add(Unknown(), net.input("x", f32(2)), name="unknown"))
    with pytest.raises(UnimplementedError, match="Unknown 'unknown': the shapes of these outputs"):
        Model(net, runtime_of())


def test_the_kind_of_program_follows_from_what_is_known() -> None:
    static, stepwise = Model(chain(), runtime_of()), Model(shape_given(), runtime_of())
    assert isinstance(next(iter(loaded(static).program_cache.programs.values())), CompiledProgram)
    for model, num_layers in ((static, 3), (stepwise, 2)):
        optimized = loaded(model).optimized
        assert optimized is not None
        assert len(optimized.graph.layers) == num_layers
    assert isinstance(next(iter(loaded(stepwise).program_cache.programs.values())), StagedProgram)
