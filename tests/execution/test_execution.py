"""An execution is checked once, and does in each call what a call of the model does."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from armpy.backend import IWorkload
from armpy.errors import BackendError, InvalidArgumentError
from armpy.execution import Execution
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import ElementwiseBinary
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import (
    CompilingBackend,
    FakeBackend,
    Handles,
    Outputs,
    OwnMemoryBackend,
    Step,
    runtime_of,
)
from armpy_testing.changed_arrays import WRONG_FOR_OUTPUTS, Change
from armpy_testing.models.networks import ADD, chain, diamond, f32, floats

BACKENDS: list[list[FakeBackend]] = [
    [],
    [FakeBackend()],
    [CompilingBackend()],
    [OwnMemoryBackend("Device", {ElementwiseBinary})],
]
IDS = ["CpuRef", "layers", "compiled", "device"]


@pytest.mark.parametrize("backends", BACKENDS, ids=IDS)
def test_each_call_reads_the_arrays_as_they_are_and_writes_where_it_wrote_before(
    backends: list[FakeBackend],
) -> None:
    model = Model(diamond(), runtime_of(*backends))
    x, y = floats(1, -2, 3, 0), floats(0, 0, 0, 0)
    execution = model.bind({"x": x}, {"y": y})
    assert isinstance(execution, Execution)
    assert execution.outputs["y"] is y
    assert execution() is execution.outputs
    assert y.tolist() == [5, 1, 13, 1]  # 4 relu(x) + 1
    x[:] = floats(2, 2, 0, 1)
    execution()
    assert y.tolist() == [9, 9, 1, 5]


@pytest.mark.parametrize("fault", [ValueError("odd"), None, 5])
def test_a_workload_that_cannot_be_bound_is_an_error_with_its_name(fault: object) -> None:
    model = Model(chain(3), runtime_of(BindingBackend(bind=fault)))
    with pytest.raises(BackendError, match=r"^Fake / ElementwiseBinary 'add_0'.*bind"):
        model.bind({"x": floats(1, 2, 3, 4)})
    assert model(floats(1, 2, 3, 4)).tolist() == [4, 5, 6, 7]  # type: ignore[union-attr]


@pytest.mark.parametrize("fault", [ValueError("odd"), GeneratorExit()])
def test_what_a_bound_workload_raises_is_an_error_with_its_name(fault: BaseException) -> None:
    backend = BindingBackend()
    execution = Model(chain(3), runtime_of(backend)).bind({"x": floats(1, 2, 3, 4)})
    backend.raised = fault
    for _ in range(2):
        with pytest.raises(
            BackendError, match=r"^Fake / ElementwiseBinary 'add_0': the backend raised"
        ):
            execution()
    backend.raised = None
    assert execution()["y"].tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize(("damage", "text"), WRONG_FOR_OUTPUTS.values(), ids=WRONG_FOR_OUTPUTS)
def test_an_output_that_does_not_fit_cannot_be_bound(damage: Change, text: str) -> None:
    y = floats(1, 2, 3, 4)
    damage(y)
    with pytest.raises(InvalidArgumentError, match=text):
        Model(chain(3), runtime_of()).bind({"x": floats(1, 2, 3, 4)}, {"y": y})


COPIED: dict[str, Callable[[], object]] = {
    "got list": lambda: [1.0, 2.0, 3.0, 4.0],
    "got >f4 (4,), not in native byte order": lambda: np.array([1, 2, 3, 4], ">f4"),
    "got float32 (4,), not contiguous (strides (8,))": lambda: np.zeros(8, np.float32)[::2],
    "got float32 (4,), not aligned": lambda: np.zeros(17, np.uint8)[1:].view(np.float32),
}


@pytest.mark.parametrize(("reason", "make"), COPIED.items(), ids=COPIED)
def test_an_input_that_would_have_to_be_copied_cannot_be_bound(
    reason: str, make: Callable[[], object]
) -> None:
    """The error says what is wrong with the array's memory."""
    text = rf"input 'x'.*have to be copied.*{re.escape(reason)}"
    with pytest.raises(InvalidArgumentError, match=text):
        Model(chain(3), runtime_of()).bind({"x": make()})


def test_names_that_are_missing_or_unknown_are_errors() -> None:
    model, x = Model(chain(3), runtime_of()), floats(1, 2, 3, 4)
    with pytest.raises(InvalidArgumentError, match="missing 'x'"):
        model.bind({})
    with pytest.raises(InvalidArgumentError, match="unknown 'z'"):
        model.bind({"x": x, "z": x})
    with pytest.raises(InvalidArgumentError, match=r"no such output.*got 'z'"):
        model.bind({"x": x}, {"z": floats(0)})
    with pytest.raises(InvalidArgumentError, match="not given by name"):
        model.bind([x])  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[:]], ids=["array", "view"])
def test_an_input_that_an_output_overwrites_is_read_as_it_was(
    part: Callable[[Array], Array],
) -> None:
    net = Network()
    x = net.input("x", f32(4))
    y = net.add(ADD, x, x)
    net.output("y", y)
    net.output("z", net.add(ADD, y, x))
    model, array = Model(net, runtime_of()), floats(1, 2, 3, 4)
    total = np.zeros(4, np.float32)
    model.run({"x": array}, {"y": part(array), "z": total})
    assert array.tolist() == [2, 4, 6, 8]
    assert total.tolist() == [3, 6, 9, 12]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", [slice(None), slice(0, 4)], ids=["whole", "a part"])
def test_arrays_that_are_bound_cannot_be_resized(part: slice) -> None:
    x, y = np.ones(8, np.float32), np.ones(8, np.float32)
    length = x[part].size
    model = Model(chain(3, (length,)), runtime_of())
    execution = model.bind({"x": x[part]}, {"y": y[part]})
    for array in (x, y):
        with pytest.raises(ValueError, match="cannot resize an array"):
            array.resize(1 << 20, refcheck=False)
    del execution
    gc.collect()
    x.resize(1 << 20, refcheck=False)


@pytest.mark.slow
def test_arrays_live_as_long_as_the_execution() -> None:
    x = floats(1, 2, 3, 4)
    execution = Model(chain(3), runtime_of()).bind({"x": x})
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is not None
    assert execution()["y"].tolist() == [4, 5, 6, 7]
    del execution
    gc.collect()
    assert gone() is None


def test_executions_of_one_network_do_not_disturb_each_other() -> None:
    model = Model(diamond(), runtime_of(CompilingBackend()))
    arrays = [np.full(4, number, np.float32) for number in range(3)]
    executions = [model.bind({"x": x}) for x in arrays]
    for execution in executions:
        execution()
    assert [e.outputs["y"][0] for e in executions] == [1, 5, 9]
    assert model(arrays[2]).tolist() == [9, 9, 9, 9]  # type: ignore[union-attr]


def test_two_threads_in_one_execution_are_an_error_of_the_second() -> None:
    backend = BindingBackend()
    execution = Model(chain(1), runtime_of(backend)).bind({"x": floats(1, 2, 3, 4)})
    entered, leave = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        leave.wait()

    backend.before = wait
    thread = threading.Thread(target=execution, daemon=True)
    thread.start()
    entered.wait()
    with pytest.raises(InvalidArgumentError, match="under way already"):
        execution()
    leave.set()
    thread.join()
    backend.before = None
    assert execution()["y"].tolist() == [2, 3, 4, 5]


def test_an_execution_that_is_under_way_when_the_model_is_closed_comes_to_its_end() -> None:
    backend = BindingBackend()
    model = Model(chain(1), runtime_of(backend))
    execution = model.bind({"x": floats(1, 2, 3, 4)})
    backend.before = model.close
    assert execution()["y"].tolist() == [2, 3, 4, 5]
    with pytest.raises(InvalidArgumentError, match="unloaded"):
        execution()


class BindingBackend(FakeBackend):
    """Binds workloads and writes down what is asked of them."""

    def __init__(self, bind: object = "right") -> None:
        super().__init__()
        self.log: list[str] = []
        self.bind = bind
        self.raised: BaseException | None = None
        self.before: Callable[[], None] | None = None

    def wrap(self, step: Step) -> IWorkload:
        return _BindingWorkload(self, step.right)


class _BindingWorkload(IWorkload):
    def __init__(self, backend: BindingBackend, right: IWorkload) -> None:
        self._backend = backend
        self._right = right

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._right.execute(inputs, outputs)

    def bind(self, inputs: Handles, outputs: Outputs) -> Callable[[], object]:
        backend = self._backend
        backend.log.append("bind")
        if isinstance(backend.bind, BaseException):
            raise backend.bind
        if backend.bind != "right":
            return backend.bind  # type: ignore[return-value]  # a fault may be of any type

        def call() -> None:
            backend.log.append("call")
            if backend.before is not None:
                backend.before()
            if backend.raised is not None:
                raise backend.raised
            self._right.execute(inputs, outputs)

        return call


@pytest.mark.parametrize("stops", [False, True])
def test_a_call_without_a_deadline_is_run_by_its_own_thread(stops: bool) -> None:
    threads: list[int] = []
    backend = FakeBackend(before_execute=lambda: threads.append(threading.get_ident()))
    if stops:
        backend.get_capabilities = lambda: {"CancellableExecution": True}  # type: ignore[method-assign]
    x, y = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    execution = Model(chain(1), runtime_of(backend)).bind({"x": x}, {"y": y})
    for _ in range(2):
        execution()
    assert threads == [threading.get_ident()] * 2
    assert y.tolist() == [2, 3, 4, 5]
    execution.start().result()
    assert threads[2] != threading.get_ident()
    x[:] = 0
    assert execution()["y"].tolist() == [1, 1, 1, 1]
    assert threads[3] == threading.get_ident()
