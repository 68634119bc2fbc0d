"""Models of one ONNX node, run by armpy and by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx.reference import ReferenceEvaluator

import armpy
from armpy_onnx.backend import OnnxBackend

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class NodeCase:
    """One node and its inputs."""

    kind: str  # ``Conv``, or with a domain: ``com.microsoft.FusedConv``
    inputs: Sequence[Array | None]  # None for one that is left out
    attributes: Mapping[str, object] = field(default_factory=dict)
    opset: int = 21
    constants: tuple[int, ...] = ()  # numbers of the inputs that are initializers
    outputs: int = 1
    # Element types and ranks of outputs that are not inferred, nor like the first input
    results: Sequence[tuple[int, int]] = ()

    @property
    def model(self) -> onnx.ModelProto:
        """The model; shapes of outputs are open."""
        domain, _, kind = self.kind.rpartition(".")
        names = ["" if array is None else f"x{i}" for i, array in enumerate(self.inputs)]
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = onnx.helper.make_node(kind, names, outputs, domain=domain, **self.attributes)
        inputs = [
            onnx.helper.make_tensor_value_info(
                names[i], onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for i, array in enumerate(self.inputs)
            if array is not None and i not in self.constants
        ]
        constants = [
            onnx.numpy_helper.from_array(array, names[i])
            for i, array in enumerate(self.inputs)
            if array is not None and i in self.constants
        ]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = onnx.helper.make_graph([node], "g", inputs, results, constants)
        opsets = [onnx.helper.make_opsetid("", self.opset)]
        if domain:
            opsets.append(onnx.helper.make_opsetid(domain, 1))
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
        model = model if domain else onnx.shape_inference.infer_shapes(model)
        first = inputs[0].type.tensor_type
        likely = (first.elem_type, len(first.shape.dim))
        for number, result in enumerate(model.graph.output):
            tensor = result.type.tensor_type
            element_type, rank = self.results[number] if self.results else likely
            tensor.elem_type = tensor.elem_type or element_type
            if not tensor.HasField("shape"):
                tensor.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in range(rank))
        return model

    @property
    def feeds(self) -> dict[str, Array]:
        """Arrays of the inputs that are no initializers."""
        return {
            f"x{i}": array
            for i, array in enumerate(self.inputs)
            if array is not None and i not in self.constants
        }


def run_armpy(case: NodeCase, backends: Sequence[str] = ("CpuRef",)) -> list[Array]:
    """Outputs of armpy."""
    runtime = armpy.Runtime(armpy.RuntimeOptions(backends=list(backends)))
    prepared = OnnxBackend.prepare(case.model, runtime=runtime)
    return list(prepared.run(case.feeds))


def run_ort(case: NodeCase) -> list[Array]:
    """Outputs of ONNX Runtime."""
    import onnxruntime as ort  # tests skip without it

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        case.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [np.asarray(array) for array in session.run(None, case.feeds)]


def run_reference(case: NodeCase) -> list[Array]:
    """Outputs of ONNX's reference in Python."""
    return [np.asarray(array) for array in ReferenceEvaluator(case.model).run(None, case.feeds)]


def assert_agree(
    case: NodeCase,
    backends: Sequence[str] = ("CpuRef",),
    rtol: float = 1e-4,
    reference: Callable[[NodeCase], list[Array]] = run_ort,
) -> None:
    """Check that armpy gives what ONNX Runtime gives, or ONNX's reference."""
    for own, wanted in zip(run_armpy(case, backends), reference(case), strict=True):
        assert own.dtype == wanted.dtype
        assert own.shape == wanted.shape
        np.testing.assert_allclose(own, wanted, rtol=rtol, atol=1e-5)
