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
    results: Sequence[tuple[int, int | None]] = ()
    domain_version: int = 1  # of an operator set that is not ONNX's own

    @property
    def model(self) -> onnx.ModelProto:
        """The model; shapes of outputs are open."""
        domain, _, kind = self.kind.rpartition(".")
        names = ["" if array is None else f"x{i}" for i, array in enumerate(self.inputs)]
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = onnx.helper.make_node(kind, names, outputs, domain=domain, **self.attributes)
        infos = [
            onnx.helper.make_tensor_value_info(
                names[i], onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for i, array in enumerate(self.inputs)
            if array is not None
        ]
        inputs = [info for info in infos if info.name in self.feeds]
        constants = [
            onnx.numpy_helper.from_array(array, names[i])
            for i, array in enumerate(self.inputs)
            if array is not None and i in self.constants
        ]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = onnx.helper.make_graph([node], "g", inputs, results, constants)
        opsets = [onnx.helper.make_opsetid("", self.opset)]
        if domain:
            opsets.append(onnx.helper.make_opsetid(domain, self.domain_version))
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
        model = model if domain else onnx.shape_inference.infer_shapes(model)
        first = infos[0].type.tensor_type
        likely = (first.elem_type, len(first.shape.dim))
        for number, result in enumerate(model.graph.output):
            tensor = result.type.tensor_type
            element_type, rank = self.results[number] if self.results else likely
            tensor.elem_type = tensor.elem_type or element_type
            if not tensor.HasField("shape") and rank is not None:
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


def with_results(
    kind: str,
    inputs: Sequence[Array | None],
    results: Sequence[int],
    domain_version: int = 1,
    **attributes: object,
) -> NodeCase:
    """A node whose outputs have element types, and no ranks before it runs."""
    return NodeCase(
        kind,
        inputs,
        attributes,
        outputs=len(results),
        results=[(element_type, None) for element_type in results],
        domain_version=domain_version,
    )


def case_name(case: NodeCase) -> str:
    """The name of a test: the operator, ranks of its inputs, and short attributes."""
    ranks = "".join("-" if array is None else str(array.ndim) for array in case.inputs)
    attributes = [f"{name}={value}" for name, value in case.attributes.items()]
    return " ".join([case.kind, str(case.opset), ranks, *(a for a in attributes if len(a) < 40)])


def run_armpy(case: NodeCase, backends: Sequence[str] = ("CpuRef",)) -> list[Array]:
    """Outputs of armpy."""
    content = case.model.SerializeToString()
    with armpy.load(content, front_end="onnx", backends=list(backends)) as model:
        return list(model.run(case.feeds).values())


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
        if own.dtype.kind == "f":
            np.testing.assert_allclose(own, wanted, rtol=rtol, atol=1e-5)
        else:
            np.testing.assert_array_equal(own, wanted)
