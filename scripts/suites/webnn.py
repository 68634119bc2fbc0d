"""Cases of W3C's tests of the Web Neural Network API, kept as JSON, as ONNX models.

References
----------
Web Platform Tests, `webnn/conformance_tests`; the JSON is that of `tests/wpt_data` of pywebnn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from .cases import ELEMENT_TYPES, Array, Case, Tolerance

FOLDER = "tests/wpt_data/conformance"
OPSET = 21
_IR = 10
Json = dict[str, Any]  # Any: as parsed

_BY_NAME = {
    name.lower(): name
    for name in (
        *("Abs", "Add", "Ceil", "Div", "Exp", "Floor", "Log", "Max", "Min", "Mul", "Neg", "Pow"),
        *("Relu", "Sigmoid", "Sqrt", "Sub", "Tanh", "MatMul"),
    )
}
"""Operators that both formats have with the same operands."""

_COMPARISONS = {
    "equal": "Equal",
    "greater": "Greater",
    "greaterOrEqual": "GreaterOrEqual",
    "lesser": "Less",
    "lesserOrEqual": "LessOrEqual",
}
_REDUCTIONS = {
    f"reduce{name}": f"Reduce{operator}"
    for name, operator in {
        **{name: name for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Sum")},
        "Product": "Prod",
        "SumSquare": "SumSquare",
    }.items()
}
_STEPS = {
    **{"conv2d": 40, "convTranspose2d": 60, "matmul": 40, "softmax": 40},
    **{"exp": 32, "elu": 18, "tanh": 44, "sigmoid": 34, "pow": 32, "batchNormalization": 12},
    "instanceNormalization": 840,
}
"""Steps by operation that the suite allows, rounded up over its data; others have four."""

_ABSOLUTE = {"log": 1 / 1024, "layerNormalization": 1 / 256}
"""Absolute tolerances of the suite, for float16."""

_REDUCED_STEPS = 100


def cases(checkout: Path) -> Iterator[Case]:
    """Read all cases of a checkout."""
    for path in sorted((checkout / FOLDER).glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8"))["tests"]:
            yield _case(f"{path.stem}/{case['name']}", case["graph"])


def _number(value: Any) -> Any:  # Any: what is no number stays as it is
    """The number that JSON writes as text: a large integer, an infinity, or NaN."""
    if not isinstance(value, str):
        return value
    try:
        return int(value.removesuffix("n"))
    except ValueError:
        return float(value.replace("Infinity", "inf"))


def _array(tensor: Json) -> Array:
    descriptor, data = tensor["descriptor"], tensor["data"]
    dtype = helper.tensor_dtype_to_np_dtype(ELEMENT_TYPES[descriptor["dataType"]])
    if not isinstance(data, list):
        return np.full(descriptor["shape"], _number(data)).astype(dtype)
    numbers = [_number(value) for value in data]
    exact = np.array(numbers, object if dtype.kind in "iu" else np.float64)
    if len(numbers) == 1:
        exact = np.broadcast_to(exact, math.prod(descriptor["shape"]))
    return exact.astype(dtype).reshape(descriptor["shape"])


def _case(name: str, graph: Json) -> Case:
    builder = _Builder()
    inputs = {}
    for key, tensor in graph["inputs"].items():
        array = _array(tensor)
        builder.arrays[key] = array
        builder.shapes[key] = array.shape
        if tensor.get("constant"):
            builder.constants.append(onnx.numpy_helper.from_array(array, key))
        else:
            inputs[key] = array
    for operator in graph["operators"]:
        builder.add(operator)
    expected = {key: _array(tensor) for key, tensor in graph["expectedOutputs"].items()}
    model = helper.make_model(
        helper.make_graph(
            builder.nodes,
            "case",
            [_info(key, array) for key, array in inputs.items()],
            [_info(key, array) for key, array in expected.items()],
            builder.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR,
    )
    return Case(name, model, inputs, expected, _tolerance(graph))


def _info(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
    )


def _tolerance(graph: Json) -> Tolerance:
    names = [operator["name"] for operator in graph["operators"]]
    steps = max(_REDUCED_STEPS if n.startswith("reduce") else _STEPS.get(n, 4) for n in names)
    return Tolerance(max(_ABSOLUTE.get(name, 0.0) for name in names), 0.0, steps)


class _Builder:
    """The nodes of one case."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.arrays: dict[str, Array] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}

    def add(self, operator: Json) -> None:
        """Add the nodes of one operator of the API."""
        name, arguments = operator["name"], _arguments(operator["arguments"])
        outputs = operator["outputs"]
        outputs = [outputs] if isinstance(outputs, str) else list(outputs)
        if name.lower() in _BY_NAME:
            self.node(_BY_NAME[name.lower()], list(arguments.values()), outputs)
        elif name in _COMPARISONS:
            self.cast(self.node(_COMPARISONS[name], list(arguments.values())), "uint8", outputs[0])
        elif name in _REDUCTIONS:
            self.reduce(_REDUCTIONS[name], arguments, outputs)
        else:
            _OPERATORS[name](self, arguments, outputs)

    def node(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str] = (), **attributes: Any
    ) -> str:
        """Add a node; return its first output, which has a name of its own by default."""
        outputs = list(outputs) or [f"{operator}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operator, list(inputs), outputs, **attributes))
        return outputs[0]

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """Add a constant; return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def like(self, value: Any, operand: str) -> str:
        """Add a constant number of the type of an input."""
        return self.constant(np.array(value).astype(self.arrays[operand].dtype), None)

    def cast(self, operand: str, type_name: str, output: str) -> str:
        """Add a cast."""
        return self.node("Cast", [operand], [output], to=ELEMENT_TYPES[type_name])

    def transpose(self, operand: str, permutation: Sequence[int], *outputs: str) -> str:
        """Add a transposition; the shape of the result is kept."""
        attributes = {"perm": list(permutation)} if permutation else {}  # of scalars, none
        output = self.node("Transpose", [operand], outputs, **attributes)
        if operand in self.shapes:
            self.shapes[output] = tuple(self.shapes[operand][axis] for axis in permutation)
        return output

    def reduce(self, operator: str, arguments: Json, outputs: list[str]) -> None:
        """Add a reduction, over all axes by default and over none for an empty list."""
        operands = [arguments["input"]]
        if "axes" in arguments:
            operands.append(self.constant(arguments["axes"]))
        self.node(
            operator,
            operands,
            outputs,
            keepdims=int(arguments.get("keepDimensions", False)),
            noop_with_empty_axes=int("axes" in arguments),
        )


def _arguments(arguments: list[Json]) -> Json:
    """All arguments by name, those of `options` among them."""
    joined: Json = {}
    for argument in arguments:
        for name, value in argument.items():
            joined.update(value if name == "options" else {name: value})
    return joined


def _clamp(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    """NaN is no bound in this API."""
    limits = [_number(arguments.get(name, "NaN")) for name in ("minValue", "maxValue")]
    bounds = [
        "" if math.isnan(limit) else builder.like(limit, arguments["input"]) for limit in limits
    ]
    builder.node("Clip", [arguments["input"], *bounds], outputs)


def _linear(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    operand = arguments["input"]
    alpha = builder.like(_number(arguments.get("alpha", 1)), operand)
    beta = builder.like(_number(arguments.get("beta", 0)), operand)
    builder.node("Add", [builder.node("Mul", [operand, alpha]), beta], outputs)


def _with_attributes(operator: str, **defaults: float) -> Callable[..., None]:
    """Operators whose numbers are attributes."""

    def add(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
        values = {name: float(_number(arguments.get(name, defaults[name]))) for name in defaults}
        builder.node(operator, [arguments["input"]], outputs, **values)

    return add


def _cast(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    builder.cast(arguments["input"], arguments["type"], outputs[0])


def _concat(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    builder.node("Concat", arguments["inputs"], outputs, axis=arguments["axis"])


def _with_shape(operator: str) -> Callable[..., None]:
    def add(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
        shape = builder.constant(arguments["newShape"])
        builder.node(operator, [arguments["input"], shape], outputs)

    return add


def _gather(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    """Indices beyond the axis are those of its ends in this API."""
    axis = arguments.get("axis", 0)
    size = builder.shapes[arguments["input"]][axis]
    wide = builder.cast(arguments["indices"], "int64", f"wide_{len(builder.nodes)}")
    clamped = builder.node("Clip", [wide, builder.constant(-size), builder.constant(size - 1)])
    builder.node("Gather", [arguments["input"], clamped], outputs, axis=axis)


def _split(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    splits, axis = arguments["splits"], arguments.get("axis", 0)
    if isinstance(splits, int):
        builder.node("Split", [arguments["input"]], outputs, axis=axis, num_outputs=splits)
    else:
        builder.node("Split", [arguments["input"], builder.constant(splits)], outputs, axis=axis)


def _slice(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    starts, sizes = arguments["starts"], arguments["sizes"]
    if not starts:
        builder.node("Identity", [arguments["input"]], outputs)
        return
    operands = [
        starts,
        [start + size for start, size in zip(starts, sizes, strict=True)],
        list(range(len(starts))),
        arguments.get("strides", [1] * len(starts)),
    ]
    inputs = [arguments["input"], *(builder.constant(operand) for operand in operands)]
    builder.node("Slice", inputs, outputs)


def _transpose(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    axes = len(builder.shapes[arguments["input"]])
    builder.transpose(
        arguments["input"], arguments.get("permutation", list(range(axes))[::-1]), *outputs
    )


def _softmax(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    builder.node("Softmax", [arguments["input"]], outputs, axis=arguments["axis"])


def _logical_not(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    condition = builder.cast(arguments["a"], "bool", f"condition_{len(builder.nodes)}")
    builder.cast(builder.node("Not", [condition]), "uint8", outputs[0])


def _convolution(
    operator: str, default_filter: str, options: Callable[[Json], Json]
) -> Callable[..., None]:
    def add(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
        data, weights = arguments["input"], arguments["filter"]
        is_channels_last = arguments.get("inputLayout", "nchw") == "nhwc"
        if is_channels_last:
            data = builder.transpose(data, (0, 3, 1, 2))
        layout = arguments.get("filterLayout", default_filter)
        if layout != default_filter:
            weights = builder.transpose(weights, [layout.index(axis) for axis in default_filter])
        padding = arguments.get("padding", [0, 0, 0, 0])
        operands = [data, weights, *([arguments["bias"]] if "bias" in arguments else [])]
        attributes = {
            "pads": [padding[0], padding[2], padding[1], padding[3]],
            "strides": arguments.get("strides", [1, 1]),
            "dilations": arguments.get("dilations", [1, 1]),
            "group": arguments.get("groups", 1),
            **options(arguments),
        }
        if "outputSizes" in arguments:
            attributes["output_padding"] = [
                arguments["outputSizes"][axis]
                - (builder.shapes[data][2 + axis] - 1) * attributes["strides"][axis]
                - (builder.shapes[weights][2 + axis] - 1) * attributes["dilations"][axis]
                - 1
                + padding[2 * axis]
                + padding[2 * axis + 1]
                for axis in range(2)
            ]
        if is_channels_last:
            result = builder.node(operator, operands, **attributes)
            builder.transpose(result, (0, 2, 3, 1), *outputs)
        else:
            builder.node(operator, operands, outputs, **attributes)

    return add


def _transposed_options(arguments: Json) -> Json:
    return {"output_padding": arguments.get("outputPadding", [0, 0])}


def _normalize(
    builder: _Builder, operand: str, axes: list[int], epsilon: float, type_like: str
) -> str:
    """The operand less its mean, divided by its standard deviation, along some axes."""
    along = builder.constant(axes)
    flags: Json = {"keepdims": 1, "noop_with_empty_axes": 1}
    centred = builder.node("Sub", [operand, builder.node("ReduceMean", [operand, along], **flags)])
    squares = builder.node("Mul", [centred, centred])
    variance = builder.node("ReduceMean", [squares, along], **flags)
    biased = builder.node("Add", [variance, builder.like(epsilon, type_like)])
    return builder.node("Div", [centred, builder.node("Sqrt", [biased])])


def _scaled(
    builder: _Builder, operand: str, arguments: Json, shape: list[int], outputs: list[str]
) -> None:
    """Multiply by the scale and add the bias, each reshaped to `shape`, where they are given."""
    for name, operator in (("scale", "Mul"), ("bias", "Add")):
        if name in arguments:
            factor = builder.node("Reshape", [arguments[name], builder.constant(shape)])
            operand = builder.node(operator, [operand, factor])
    builder.node("Identity", [operand], outputs)


def _batch_normalization(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    operand, axis = arguments["input"], arguments.get("axis", 1)
    shape = [1] * len(builder.shapes[operand])
    shape[axis] = -1
    mean, variance = (
        builder.node("Reshape", [arguments[name], builder.constant(shape)])
        for name in ("mean", "variance")
    )
    epsilon = builder.like(arguments.get("epsilon", 1e-5), operand)
    deviation = builder.node("Sqrt", [builder.node("Add", [variance, epsilon])])
    normal = builder.node("Div", [builder.node("Sub", [operand, mean]), deviation])
    _scaled(builder, normal, arguments, shape, outputs)


def _instance_normalization(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    operand = arguments["input"]
    is_channels_last = arguments.get("layout", "nchw") == "nhwc"
    axes, shape = ([1, 2], [1, 1, 1, -1]) if is_channels_last else ([2, 3], [1, -1, 1, 1])
    normal = _normalize(builder, operand, axes, arguments.get("epsilon", 1e-5), operand)
    _scaled(builder, normal, arguments, shape, outputs)


def _layer_normalization(builder: _Builder, arguments: Json, outputs: list[str]) -> None:
    operand = arguments["input"]
    sizes = builder.shapes[operand]
    axes = arguments.get("axes", list(range(1, len(sizes))))
    epsilon = arguments.get("epsilon", 1e-5)
    is_plain = axes and axes == list(range(axes[0], len(sizes))) and "scale" in arguments
    if is_plain:
        operands = [operand, arguments["scale"]]
        operands += [arguments["bias"]] if "bias" in arguments else []
        builder.node("LayerNormalization", operands, outputs, axis=axes[0], epsilon=epsilon)
        return
    normal = _normalize(builder, operand, axes, epsilon, operand)
    shape = [size if axis in axes else 1 for axis, size in enumerate(sizes)]
    order = sorted(range(len(axes)), key=lambda position: axes[position])
    for name in ("scale", "bias"):
        if name in arguments and order:
            arguments[name] = builder.transpose(arguments[name], order)
    _scaled(builder, normal, arguments, shape, outputs)


_OPERATORS: dict[str, Callable[[_Builder, Json, list[str]], None]] = {
    "clamp": _clamp,
    "linear": _linear,
    "elu": _with_attributes("Elu", alpha=1.0),
    "leakyRelu": _with_attributes("LeakyRelu", alpha=0.01),
    "hardSigmoid": _with_attributes("HardSigmoid", alpha=0.2, beta=0.5),
    "hardSwish": _with_attributes("HardSwish"),
    "cast": _cast,
    "concat": _concat,
    "expand": _with_shape("Expand"),
    "reshape": _with_shape("Reshape"),
    "gather": _gather,
    "split": _split,
    "slice": _slice,
    "transpose": _transpose,
    "softmax": _softmax,
    "logicalNot": _logical_not,
    "conv2d": _convolution("Conv", "oihw", lambda _: {}),
    "convTranspose2d": _convolution("ConvTranspose", "iohw", _transposed_options),
    "batchNormalization": _batch_normalization,
    "instanceNormalization": _instance_normalization,
    "layerNormalization": _layer_normalization,
}
