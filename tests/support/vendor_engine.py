"""Faults of a backend around an engine: what is handed over wrongly, and brought back wrongly."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any  # ONNX's own objects

import numpy as np

from armpy.backend import (
    IBackendInternal,
    IMemoryManager,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    OptimizationViews,
    OptionValues,
    Substitution,
    WorkloadInfo,
)
from armpy.graph import SubgraphView
from armpy.ops import PreCompiled
from armpy.ops.operation import Array, Operation
from tests.support.example_backends import EXAMPLES
from tests.support.vendor_programs import spoil

sys.path.append(str(EXAMPLES / "onnx_runtime"))
from armpy_onnxruntime.backend import OnnxRuntimeBackend
from armpy_onnxruntime.engine import require
from armpy_onnxruntime.export import export_model
from armpy_onnxruntime.program import Program, ProgramWorkload

Edit = Callable[[Any], None]
"""Changes an ONNX model."""

Handles = Sequence[ITensorHandle | None]
Outputs = Sequence[ITensorHandle]


class Engine(OnnxRuntimeBackend):
    """The example, whose models are edited and whose workloads are of another class."""

    def __init__(
        self, edit: Edit | None = None, workload: type[ProgramWorkload] = ProgramWorkload
    ) -> None:
        super().__init__()
        self.edit = edit
        self.workload = workload
        self.threads: list[int] = []

    def optimize_subgraph_with_options(
        self, view: SubgraphView, model_options: OptionValues
    ) -> OptimizationViews:
        made = self.model(export_model(view))
        program = Program(made, int(model_options.get("num_threads", 0)))
        shapes = tuple(value.info.known_shape for value in view.outputs)
        return OptimizationViews(
            substitutions=[Substitution.by_operation(view, PreCompiled(program, shapes))]
        )

    def model(self, model: bytes) -> bytes:
        """The model, edited."""
        if self.edit is None:
            return model
        parsed = require("onnx").load_from_string(model)
        self.edit(parsed.graph)
        return bytes(parsed.SerializeToString())

    def create_workload_factory(self, memory_manager: IMemoryManager | None) -> IWorkloadFactory:
        workload = self.workload

        class Factory(IWorkloadFactory):
            def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
                assert isinstance(operation, PreCompiled)
                return workload(operation.program)

        return Factory()


def nodes(name: str, edit: Callable[[Any, dict[str, Any]], None]) -> Callable[[], Engine]:
    """Each node of a kind is edited, given its attributes by name."""

    def change(graph: Any) -> None:
        for node in graph.node:
            if node.op_type == name:
                edit(node, {a.name: a for a in node.attribute})

    return lambda: Engine(change)


def without(name: str) -> Callable[[Any, dict[str, Any]], None]:
    """An attribute is left to its default."""

    def edit(node: Any, attributes: dict[str, Any]) -> None:
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend(kept)

    return edit


def permuted(name: str, order: Sequence[int]) -> Callable[[Any, dict[str, Any]], None]:
    """Numbers of an attribute come in another order."""

    def edit(node: Any, attributes: dict[str, Any]) -> None:
        if name in attributes and len(attributes[name].ints) == len(order):
            numbers = list(attributes[name].ints)
            attributes[name].ints[:] = [numbers[i] for i in order]

    return edit


def number(name: str, value: float) -> Callable[[Any, dict[str, Any]], None]:
    """An attribute has some value."""

    def edit(node: Any, attributes: dict[str, Any]) -> None:
        without(name)(node, attributes)
        node.attribute.append(require("onnx").helper.make_attribute(name, value))

    return edit


def other(name: str) -> Callable[[Any, dict[str, Any]], None]:
    """Another operator is used."""

    def edit(node: Any, attributes: dict[str, Any]) -> None:
        node.op_type = name

    return edit


def swapped(node: Any, attributes: dict[str, Any]) -> None:
    """Operands come in the other order."""
    if len(node.input) == 2:
        node.input[:] = [node.input[1], node.input[0]]


def no_last_input(node: Any, attributes: dict[str, Any]) -> None:
    """An optional operand is left out."""
    if len(node.input) == 3:
        del node.input[2]


def turned(node: Any, attributes: dict[str, Any]) -> None:
    """The other way round."""
    if "perm" in attributes:
        perm = list(attributes["perm"].ints)
        attributes["perm"].ints[:] = [perm.index(i) for i in range(len(perm))]


def half_weights(graph: Any) -> None:
    """Weights go through half precision."""
    helper = require("onnx").numpy_helper
    for tensor in graph.initializer:
        array = helper.to_array(tensor)
        if array.dtype == np.float32 and array.ndim > 1:
            rounded = array.astype(np.float16).astype(np.float32)
            tensor.CopyFrom(helper.from_array(rounded, tensor.name))


def first_dim_fixed(graph: Any) -> None:
    """Constants of one element are 1."""
    helper = require("onnx").numpy_helper
    for tensor in graph.initializer:
        array = helper.to_array(tensor)
        if array.dtype == np.float32 and array.size == 1 and array.ndim:
            tensor.CopyFrom(helper.from_array(np.ones_like(array), tensor.name))


def bias_names(graph: Any) -> None:
    """Constants of the same shape share the name of the first."""
    kept: dict[object, str] = {}
    for tensor in graph.initializer:
        key = tuple(tensor.dims), tensor.data_type
        name = kept.setdefault(key, tensor.name)
        if name != tensor.name:
            for node in graph.node:
                node.input[:] = [name if n == tensor.name else n for n in node.input]


def outputs_in_order_of_names(graph: Any) -> None:
    """Outputs come in the order of the engine."""
    made = list(reversed(graph.output))
    del graph.output[:]
    graph.output.extend(made)


def inputs_reversed(graph: Any) -> None:
    made = list(reversed(graph.input))
    del graph.input[:]
    graph.input.extend(made)


class Around(ProgramWorkload):
    """Does something with what the engine has computed."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        super().execute(inputs, outputs)
        arrays = [handle.map() for handle in outputs]
        given = [handle.map(write=False) for handle in inputs if handle is not None]
        self.spoil(given, arrays)
        for handle in (*outputs, *(h for h in inputs if h is not None)):
            handle.unmap()

    def spoil(self, given: list[Array], made: list[Array]) -> None:
        """Nothing wrong."""


class SecondOutput(Around):
    """Only the first output is brought back."""

    def spoil(self, given: list[Array], made: list[Array]) -> None:
        for array in made[1:]:
            spoil(array)


class OneBinding(Around):
    """Inputs are copied to one place of the session first."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        staged = self.__dict__.setdefault("staged", {})
        made = []
        for n, handle in enumerate(inputs):
            if handle is None:
                continue
            array = handle.map(write=False)
            kept = staged.setdefault(n, np.empty_like(array))
            kept[...] = array
            handle.unmap()
            made.append(kept)
        threading.Event().wait(1e-4)
        names = dict(zip(self._program.inputs, made, strict=True))
        found = self._program.session.run(None, names)
        for handle, array in zip(outputs, found, strict=True):
            handle.map(read=False)[...] = array
            handle.unmap()


class FirstInputs(Around):
    """Inputs that lie where they lay are not read again, from the third execution on."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        kept = self.__dict__.setdefault("kept", [])
        super().execute(inputs, outputs)
        copies = []
        for handle in outputs:
            copies.append(handle.map(write=False).copy())
            handle.unmap()
        kept.append(copies)
        if len(kept) > 2:
            for handle, old in zip(outputs, kept[-2], strict=True):
                handle.map(read=False)[...] = old
                handle.unmap()
        del kept[:-3]


class SwallowsErrors(Around):
    """An engine that fails gives zeros."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        try:
            super().execute(inputs, outputs)
        except Exception:  # noqa: BLE001 - the fault
            for handle in outputs:
                handle.map(read=False)[...] = 0
                handle.unmap()


class Flushes(Around):
    """Denormals are 0."""

    def spoil(self, given: list[Array], made: list[Array]) -> None:
        for array in made:
            array[np.abs(array) < 1e-37] = 0


class LosesNan(Around):
    """What is not a number is the largest number."""

    def spoil(self, given: list[Array], made: list[Array]) -> None:
        for array in made:
            array[np.isnan(array)] = np.finfo(np.float32).max


class LosesInfinity(Around):
    """Infinite is the largest number."""

    def spoil(self, given: list[Array], made: list[Array]) -> None:
        for array in made:
            np.clip(array, -3.4e38, 3.4e38, out=array)


class WritesInput(Around):
    """Normalises its input where it lies."""

    def spoil(self, given: list[Array], made: list[Array]) -> None:
        for array in given:
            if array.flags.writeable and array.size > 4:
                array.reshape(-1)[-1] = 0


class KeepsOutputs(Around):
    """Remembers arrays of every execution."""

    kept: list[Array] = []  # noqa: RUF012 - the fault

    def spoil(self, given: list[Array], made: list[Array]) -> None:
        self.kept.extend(array.copy() for array in made)


class KeepsMapped(ProgramWorkload):
    """Unmaps nothing but outputs."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        super().execute(inputs, outputs)
        for handle in inputs:
            if handle is not None:
                handle.map(write=False)


class Large(Around):
    """Beyond 64 KiB the engine splits work, and leaves the seam out."""

    def spoil(self, given: list[Array], made: list[Array]) -> None:
        for array in made:
            if array.nbytes > 1 << 16:
                array.reshape(-1)[(1 << 14) - 1] = 0


class SameModel(Engine):
    """Sessions are kept by the names of nodes and the shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[object, bytes] = {}

    def model(self, model: bytes) -> bytes:
        graph = require("onnx").load_from_string(model).graph
        shapes = [str(value.type) for value in (*graph.input, *graph.output)]
        key = str([n.op_type for n in graph.node]), str(shapes)
        return self.kept.setdefault(key, model)


class IgnoresThreads(Engine):
    """Checks the option, and runs as it likes."""

    def optimize_subgraph_with_options(
        self, view: SubgraphView, model_options: OptionValues
    ) -> OptimizationViews:
        return super().optimize_subgraph_with_options(view, {})


def model(edit: Edit) -> Callable[[], Engine]:
    return lambda: Engine(edit)


def workload(kind: type[ProgramWorkload]) -> Callable[[], Engine]:
    return lambda: Engine(None, kind)


ENGINE: dict[str, Callable[[], IBackendInternal]] = {
    "conv/dilations": nodes("Conv", without("dilations")),
    "conv/dilations-swapped": nodes("Conv", permuted("dilations", (1, 0))),
    "conv/strides-swapped": nodes("Conv", permuted("strides", (1, 0))),
    "conv/pads-in-pairs": nodes("Conv", permuted("pads", (0, 2, 1, 3))),
    "conv/pads-at-end-first": nodes("Conv", permuted("pads", (2, 3, 0, 1))),
    "conv/bias": nodes("Conv", no_last_input),
    "pool/count-include-pad": nodes("AveragePool", number("count_include_pad", 1)),
    "pool/count-without-pad": nodes("AveragePool", number("count_include_pad", 0)),
    "pool/pads-at-end-first": nodes("MaxPool", permuted("pads", (2, 3, 0, 1))),
    "pool/window-swapped": nodes("MaxPool", permuted("kernel_shape", (1, 0))),
    "softmax/axis-default": nodes("Softmax", number("axis", -1)),
    "softmax/other": nodes("Softmax", other("LogSoftmax")),
    "transpose/inverse": nodes("Transpose", turned),
    "sub/swapped": nodes("Sub", swapped),
    "div/swapped": nodes("Div", swapped),
    "power/swapped": nodes("Pow", swapped),
    "maximum/minimum": nodes("Max", other("Min")),
    "leaky/alpha": nodes("LeakyRelu", without("alpha")),
    "elu/alpha": nodes("Elu", without("alpha")),
    "softplus/softsign": nodes("Softplus", other("Softsign")),
    "hard-swish/alike": nodes("HardSwish", other("Mish")),
    "clip/no-upper": nodes("Clip", no_last_input),
    "floor/is-nearest": nodes("Floor", other("Round")),
    "pad/no-value": nodes("Pad", no_last_input),
    "pad/mode": nodes("Pad", number("mode", "edge")),  # type: ignore[arg-type]
    "weights/half": model(half_weights),
    "weights/one-element": model(first_dim_fixed),
    "weights/names": model(bias_names),
    "ends/outputs": model(outputs_in_order_of_names),
    "ends/inputs": model(inputs_reversed),
    "ends/second-output": workload(SecondOutput),
    "binding/one-for-all": workload(OneBinding),
    "binding/third-execution": workload(FirstInputs),
    "results/denormals": workload(Flushes),
    "results/nan": workload(LosesNan),
    "results/infinity": workload(LosesInfinity),
    "results/seam": workload(Large),
    "inputs/written": workload(WritesInput),
    "memory/kept": workload(KeepsOutputs),
    "memory/mapped": workload(KeepsMapped),
    "cache/same-model": SameModel,
    "option/threads": IgnoresThreads,
}
"""In a backend around an engine, each the makings of one."""
