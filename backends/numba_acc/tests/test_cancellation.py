from __future__ import annotations

import threading

import numpy as np
import pytest
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.machine.execution import Command
from armpy_numba_acc.machine.layout import word_of
from armpy_numba_acc.machine.work import WorkKind
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.estimate import MOST_PIECES, num_pieces
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime.instance import Instance, LoadedCode
from armpy_numba_acc.runtime.workload import ProgramWorkload

from armpy import DataType, Model, Network, TensorInfo
from armpy.backend import Cancellation, HostTensorHandle, cancellable
from armpy.errors import ExecutionCancelledError
from armpy.graph import SubgraphView

from .networks import convolutions, image, runtime_of

ISA = host_isas()[0]


def compiled(network: Network, num_threads: int = 1) -> Program:
    graph = network.build()
    return lower_region(SubgraphView.of(graph, graph.layers), ISA, num_threads)


def test_an_execution_with_an_unused_cancellation_is_like_any_other() -> None:
    with runtime_of(2) as runtime:
        network = runtime.load_network(convolutions())
        expected = runtime.enqueue_workload(network, image())
        with cancellable(Cancellation()):
            actual = runtime.enqueue_workload(network, image())
    np.testing.assert_array_equal(actual["y"], expected["y"])


@pytest.mark.parametrize("num_threads", [1, 2])
def test_what_is_cancelled_already_runs_no_command(num_threads: int) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    assert cancellation.is_cancelled
    with runtime_of(num_threads) as runtime:
        network = runtime.load_network(convolutions())
        expected = runtime.enqueue_workload(network, image())
        untouched = np.zeros_like(expected["y"])
        with (
            cancellable(cancellation),
            pytest.raises(ExecutionCancelledError, match="was cancelled"),
        ):
            runtime.enqueue_workload(network, image(), {"y": untouched})
        assert not untouched.any()
        again = runtime.enqueue_workload(network, image())
    np.testing.assert_array_equal(again["y"], expected["y"])


@pytest.mark.slow
@pytest.mark.parametrize("num_threads", [1, 2])
def test_another_thread_stops_an_execution_that_would_take_long(num_threads: int) -> None:
    network = convolutions(size=160, channels=96, num_layers=60)
    (x,) = image(160, 96).values()
    instance = Instance(LoadedCode(compiled(network, num_threads), ISA))
    cancellation = Cancellation()
    threading.Timer(0.02, cancellation.cancel).start()
    with pytest.raises(ExecutionCancelledError, match="was cancelled"):
        instance.run([x, np.empty_like(x)], cancellation)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_what_a_program_was_bound_with_stops_it(num_threads: int) -> None:
    cancellation = Cancellation()
    network = convolutions()
    (x,) = image().values()
    y = np.empty_like(x)
    workload = ProgramWorkload(LoadedCode(compiled(network, num_threads), ISA))
    info = TensorInfo(x.shape, DataType.FLOAT32)
    with cancellable(cancellation):
        execute = workload.bind([HostTensorHandle(info, x)], [HostTensorHandle(info, y)])
    execute()
    with Model(network) as model:
        np.testing.assert_array_equal(y, model.run({"x": x})["y"])
    cancellation.cancel()
    with pytest.raises(ExecutionCancelledError, match="was cancelled"):
        execute()


@pytest.mark.slow
def test_long_commands_are_run_in_pieces_with_the_same_results() -> None:
    network = convolutions(size=200, channels=64, num_layers=1)
    (x,) = image(200, 64).values()
    program = compiled(network, 2)
    assert max(info.num_pieces for info in program.infos) > 1
    in_pieces, whole = np.empty_like(x), np.empty_like(x)
    Instance(LoadedCode(program, ISA)).run([x, in_pieces])
    code = LoadedCode(program, ISA)
    instance = Instance(code)
    instance._commands[:, word_of(Command, "num_pieces")] = 1
    instance.run([x, whole])
    np.testing.assert_array_equal(in_pieces, whole)


def test_pieces_are_few_and_short_commands_have_one() -> None:
    choices = Choices(ISA, typical(ISA))
    assert num_pieces(WorkKind.FLOATS, choices, 1000) == 1
    assert num_pieces(WorkKind.FLOATS, choices, 10**15) == MOST_PIECES
