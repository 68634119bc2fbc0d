"""Small models that ONNX Runtime runs though they deviate from ONNX, and some that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array: TypeAlias = npt.NDArray[Any]  # Any: of every element type
Proto: TypeAlias = Any  # Any: messages of the package, which has no types
Change: TypeAlias = Callable[[Proto], object]

X = np.array([-1.0, 2.0], np.float32)
W = np.array([3.0, 5.0], np.float32)
RELU = np.maximum(X, 0)
CUBE = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
MICROSOFT = "com.microsoft"
ODD = b"\xc4\xa3\xd0\xcd"
"""No UTF-8."""
ODD_TEXT = "ģ\\xd0\\xcd"
"""What armpy calls `ODD`."""


@dataclass(frozen=True, eq=False, slots=True)
class Deviation:
    """A model that deviates, and what it gives."""

    kind: str
    """Row of the table in docs/reference/onnx_files.md."""
    name: str
    model: bytes
    expected: Mapping[str, Array]
    inputs: Mapping[str, Array]

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def value(name: str, shape: Sequence[object] | None = (2,), kind: int = TensorProto.FLOAT) -> Proto:
    """An input or output."""
    return helper.make_tensor_value_info(name, kind, shape)


def untyped(name: str) -> Proto:
    """An output of which only the name is known."""
    return onnx.ValueInfoProto(name=name)


def node(kind: str, inputs: str = "x", outputs: str = "y", **attributes: object) -> Proto:
    """A node; names are separated by spaces, and "-" is one that is left out."""
    read, written = ([n.replace("-", "") for n in names.split()] for names in (inputs, outputs))
    return helper.make_node(kind, read, written, **attributes)


def weights(array: Array = W, name: str = "w") -> Proto:
    """An initializer."""
    return numpy_helper.from_array(array, name)


def stored(name: str = "w", **fields: object) -> Proto:
    """An initializer of two floats in fields of its own."""
    return TensorProto(**{"name": name, "dims": [2], "data_type": TensorProto.FLOAT, **fields})


def sparse(values: Sequence[float], places: object, shape: Sequence[int], name: str = "w") -> Proto:
    """A sparse tensor."""
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.array(values, np.float32), name),
        numpy_helper.from_array(np.array(places, np.int64), "places"),
        shape,
    )


def model(
    nodes: Sequence[Proto] | None = None,
    *,
    inputs: Sequence[Proto] | None = None,
    outputs: Sequence[Proto] | None = None,
    initializers: Sequence[Proto] = (),
    opset: int = 18,
    change: Change | None = None,
    **parts: object,
) -> bytes:
    """The bytes of a model, of one Relu if nothing else is said, after a change of it."""
    graph = helper.make_graph(
        [node("Relu")] if nodes is None else nodes,
        "g",
        [value("x")] if inputs is None else inputs,
        [value("y")] if outputs is None else outputs,
        list(initializers),
        **parts,
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    if change is not None:
        change(proto)
    contents: bytes = proto.SerializeToString()
    return contents


def added(*initializers: Proto, **parts: Any) -> bytes:
    """A sum of the input and an initializer."""
    return model([node("Add", "x w")], initializers=initializers, **parts)


def branched(then: Proto) -> bytes:
    """A model that runs a graph."""
    other = helper.make_graph([node("Neg", "x", "b")], "else", [], [value("b")])
    run = node("If", "c", "y", then_branch=then, else_branch=other)
    return model([run], inputs=[value("x"), value("c", (), TensorProto.BOOL)])


def function(nodes: Sequence[Proto], inputs: Sequence[str] = ("a",), opset: int = 18) -> Proto:
    """A function ``my.F``."""
    imports = [helper.make_opsetid("", opset)]
    return helper.make_function("my", "F", list(inputs), ["b"], nodes, imports)


def calling(*functions: Proto, call: Proto | None = None) -> bytes:
    """A model that calls ``my.F``."""

    def change(proto: Proto) -> None:
        proto.functions.extend(functions)
        proto.opset_import.add(domain="my", version=1)

    return model([call or node("F", domain="my")], change=change)


def misnamed(contents: bytes) -> bytes:
    """A model in which "zzzz" is no UTF-8."""
    return contents.replace(b"zzzz", ODD)


def imports(*versions: tuple[str, int]) -> Change:
    """A change of a model's operator sets."""

    def change(proto: Proto) -> None:
        del proto.opset_import[:]
        for domain, version in versions:
            proto.opset_import.add(domain=domain, version=version)

    return change


def _set(**fields: object) -> Change:
    """A change of a model's own fields."""

    def change(proto: Proto) -> None:
        for name, content in fields.items():
            setattr(proto, name, content)

    return change


def _properties_twice(place: Callable[[Proto], Proto]) -> Change:
    def change(proto: Proto) -> None:
        for text in ("first", "second"):
            place(proto).metadata_props.add(key="key", value=text)

    return change


def _described_wrongly(proto: Proto) -> None:
    """Fields of a model that say nothing of what is computed."""
    for message in (proto, proto.graph, proto.graph.node[0], proto.graph.input[0]):
        message.doc_string = "zzzz"
    proto.producer_name = proto.producer_version = proto.domain = "zzzz"
    proto.metadata_props.add(key="zzzz", value="zzzz")


def _with_sparse(*tensors: Proto) -> Change:
    return lambda proto: proto.graph.sparse_initializer.extend(tensors)


def _softmax(array: Array, axes: tuple[int, ...]) -> Array:
    powers = np.exp(array - array.max(axes, keepdims=True))
    return np.asarray(powers / powers.sum(axes, keepdims=True))


def _cube(change: Change, opset: int = 18) -> bytes:
    """A Softmax, which is of the last axis since opset 13, and of all but the first before."""
    nodes, outputs = [node("Softmax")], [value("y", None)]
    return model(nodes, inputs=[value("x", (2, 2, 2))], outputs=outputs, opset=opset, change=change)


def _left_over(**attributes: object) -> bytes:
    """A Constant that nothing reads."""
    constant = helper.make_node("Constant", [], ["c"])
    constant.attribute.extend(map(helper.make_attribute, attributes, attributes.values()))
    return model([constant, node("Relu")])


def _constant(**attributes: object) -> bytes:
    return model(
        [helper.make_node("Constant", [], ["c"], **attributes), node("Identity", "c")],
        inputs=[],
        outputs=[untyped("y")],
    )


def _external(proto: Proto) -> Proto:
    """An initializer whose elements lie in a file that is not there."""
    proto.data_location = TensorProto.EXTERNAL
    proto.external_data.add(key="location", value="nowhere.bin")
    return proto


def _segmented(proto: Proto) -> Proto:
    proto.segment.begin, proto.segment.end = 0, 2
    return proto


def _valueless(proto: Proto) -> None:
    proto.graph.node[0].attribute[0].ClearField("f")


def _attribute_twice(proto: Proto) -> None:
    node = proto.graph.node[0]
    node.attribute.append(node.attribute[0])


def _append_function(own: Proto, proto: Proto) -> None:
    proto.functions.append(own)


def _referring(proto: Proto) -> None:
    _valueless(proto)
    proto.graph.node[0].attribute[0].ref_attr_name = "alpha"


def _without(path: str) -> Change:
    """A change that takes a field away, such as ``graph.output.0.type``."""

    def change(proto: Proto) -> None:
        *parts, last = path.split(".")
        for part in parts:
            proto = proto[int(part)] if part.isdigit() else getattr(proto, part)
        proto.ClearField(last)

    return change


_LEAKY = [node("LeakyRelu", alpha=0.5)]
_COMPLEX = np.ones(2, np.complex64)
_GELU = np.array([-0.15865526, 1.9544997], np.float32)
_QUICK_GELU = X / (1 + np.exp(-1.702 * X))
_ONE_NAME = "an initializer twice"
_DOMAIN = "ONNX's domain as `ai.onnx`"
_IMPORT = "an operator set that is not imported, or twice"
_FORM = "an odd `ir_version`"
_META = "a metadata key twice, or empty"
_NAMES = "names and texts that are not UTF-8, or odd"
_OUTPUT = "outputs that are listed twice, inputs, or initializers"
_UNREAD = "initializers and `Constant` nodes that nothing reads"
_DATA = "elements in two fields, or in segments"
_SPARSE = "sparse initializers, and `Constant` with `sparse_value`"
_TEXTS = "`Constant` with `value_string` or `value_strings`"
_ORDER = "nodes in another order than they are computed in"
_EMPTY = "nodes without inputs and outputs"
_VALUES = "wrong, missing or repeated types and shapes of tensors"
_DEFAULTS = "initializers that are inputs, or are not in old files"
_MISSING = "graphs and nodes without a name"
_OPERANDS = "optional operands left out by empty names"
_ATTRIBUTES = "attributes without a value, or that refer to nothing"
_FUNCTIONS = "functions that nothing calls, or of other opsets"
_UNKNOWN = "fields that ONNX does not have, and what nothing uses"


def _case(
    kind: str, name: str, contents: bytes, expected: Any = RELU, inputs: Any = X
) -> Deviation:
    """Make a row of the table; a single input is ``x``, a single output is ``y``."""
    return Deviation(
        kind,
        f"{kind}: {name}",
        contents,
        expected if isinstance(expected, dict) else {"y": expected},
        inputs if isinstance(inputs, dict) else {"x": inputs},
    )


_ONES = np.ones(5, np.float32)
_PAIR = [value("x"), value("w")]
_TWO_NODES = [node("Relu", "x", "a"), node("Abs", "a")]
_ROW: dict[str, Any] = {"inputs": [value("x", (1, 2))], "outputs": [value("y", (1, 2))]}
_FIVE: dict[str, Any] = {"inputs": [value("x", (5,))], "outputs": [value("y", (5,))]}
_GRID: dict[str, Any] = {"inputs": [value("x", (2, 3))], "outputs": [value("y", (2, 3))]}
_NOTHING = helper.make_node("Relu", [], [])
_ODD_NAME = "a b/\n:\0"
_LONG_NAME = "a" * 70000
_NEGATED = function([node("Neg", "a", "b")])

DEVIATIONS: tuple[Deviation, ...] = (
    _case(_FORM, "form 0", model(change=_set(ir_version=0))),
    _case(_FORM, "form 1 with imports", model(change=_set(ir_version=1))),
    _case(_IMPORT, "no import but of another domain", model(change=imports(("ai.onnx.ml", 3)))),
    _case(
        _IMPORT,
        "Softmax of the newest version without import",
        _cube(imports(("ai.onnx.ml", 3))),
        _softmax(CUBE, (2,)),
        CUBE,
    ),
    *(
        _case(
            _IMPORT,
            f"{first} then {last} of {name!r}",
            _cube(imports(("", first), (name, last))),
            _softmax(CUBE, (2,) if last == 13 else (1, 2)),
            CUBE,
        )
        for first, last in ((11, 13), (13, 11))
        for name in ("", "ai.onnx")
    ),
    *(
        _case(_IMPORT, f"com.microsoft.{kind}", model([node(kind, domain=MICROSOFT)]), expected)
        for kind, expected in (("Gelu", _GELU), ("QuickGelu", _QUICK_GELU))
    ),
    *(
        _case(
            _IMPORT,
            f"{kind} after a node of ai.onnx",
            model(
                [node("Identity", "x", "z", domain="ai.onnx"), node(kind, "z", domain=MICROSOFT)]
            ),
            expected,
        )
        for kind, expected in (("Gelu", _GELU), ("QuickGelu", _QUICK_GELU))
    ),
    _case(
        _IMPORT,
        "Binarizer",
        model([node("Binarizer", domain="ai.onnx.ml", threshold=0.5)], **_ROW),
        (X[None] > 0).astype(np.float32),
        X[None],
    ),
    _case(
        _IMPORT,
        "FeatureVectorizer",
        model([node("FeatureVectorizer", domain="ai.onnx.ml", inputdimensions=[2])], **_ROW),
        X[None],
        X[None],
    ),
    _case(
        _IMPORT,
        "ai.onnx.ml not imported",
        model([node("Scaler", domain="ai.onnx.ml", offset=[0.5], scale=[2.0])], **_ROW),
        np.array([[-3.0, 3.0]], np.float32),
        X[None],
    ),
    *(
        _case(_IMPORT, f"{name} without use", model(change=imports(("", 18), (name, 0))))
        for name in ("vendor", MICROSOFT)
    ),
    _case(_DOMAIN, "node in ai.onnx", model([node("Relu", domain="ai.onnx")])),
    _case(
        _DOMAIN,
        "node and import in ai.onnx",
        model([node("Relu", domain="ai.onnx")], change=imports(("ai.onnx", 18))),
    ),
    _case(_DOMAIN, "import of ai.onnx", model(change=imports(("ai.onnx", 18)))),
    _case(
        _DOMAIN,
        "operator that is a function",
        model([node("Relu", "x", "z", domain="ai.onnx"), node("Celu", "z", domain="ai.onnx")]),
    ),
    _case(_META, "key twice in model", model(change=_properties_twice(lambda proto: proto))),
    _case(_META, "key twice in graph", model(change=_properties_twice(lambda proto: proto.graph))),
    _case(
        _META,
        "key twice in node",
        model(change=_properties_twice(lambda proto: proto.graph.node[0])),
    ),
    _case(_META, "empty key", model(change=lambda proto: proto.metadata_props.add(value="v"))),
    _case(
        _NAMES,
        "tensor in another encoding",
        misnamed(model([node("Relu", "x", "zzzz"), node("Identity", "zzzz")])),
    ),
    _case(_NAMES, "node in another encoding", misnamed(model([node("Relu", name="zzzz")]))),
    _case(_NAMES, "dimension", misnamed(model(inputs=[value("x", ["zzzz"])]))),
    _case(_NAMES, "dimension of an output", misnamed(model(outputs=[value("y", ["zzzz"])]))),
    _case(_NAMES, "descriptions", misnamed(model(change=_described_wrongly))),
    _case(_NAMES, "described tensor", misnamed(model(value_info=[value("zzzz")]))),
    _case(_NAMES, "domain", misnamed(model(change=imports(("", 18), ("zzzz", 1))))),
    _case(
        _NAMES,
        "initializer",
        misnamed(model([node("Add", "x zzzz")], initializers=[weights(name="zzzz")])),
        X + W,
    ),
    _case(
        _NAMES,
        "control characters",
        model(
            [
                helper.make_node("Relu", ["x"], [_ODD_NAME]),
                helper.make_node("Abs", [_ODD_NAME], ["y"]),
            ]
        ),
    ),
    _case(
        _NAMES, "70,000 letters", model([node("Relu", "x", _LONG_NAME), node("Abs", _LONG_NAME)])
    ),
    _case(_OUTPUT, "output twice", model(outputs=[value("y"), value("y")])),
    _case(
        _OUTPUT,
        "output is an input",
        model(outputs=[value("y"), value("x")]),
        {"y": RELU, "x": X},
    ),
    _case(
        _OUTPUT,
        "output is an initializer",
        model(outputs=[value("y"), value("w")], initializers=[weights()]),
        {"y": RELU, "w": W},
    ),
    _case(
        _OUTPUT,
        "output is initializer and input",
        model(outputs=[value("y"), value("w")], initializers=[weights()], inputs=_PAIR),
        {"y": RELU, "w": W},
    ),
    _case(_OUTPUT, "no nodes", model([], outputs=[value("x")]), {"x": X}),
    _case(_ONE_NAME, "equal copies", added(weights(), weights()), X + W),
    _case(_ONE_NAME, "three", added(weights(-W), weights(W * 7), weights()), X + W),
    _case(_ONE_NAME, "in two forms", added(weights(-W), stored(float_data=W.tolist())), X + W),
    _case(_ONE_NAME, "and an input", added(weights(-W), weights(), inputs=_PAIR), X + W),
    _case(_ONE_NAME, "other elements", added(weights(-W), weights()), X + W),
    *(
        _case(_UNREAD, f"initializer {name}", model(initializers=[tensor]))
        for name, tensor in (
            ("complex", weights(_COMPLEX)),
            ("text", weights(np.array(["a"], object))),
            ("without a name", weights(name="")),
            ("with too few bytes", stored(raw_data=b"1234")),
            ("with a negative dimension", stored(dims=[-2], raw_data=b"1234")),
            ("in a file that is not there", _external(stored())),
            ("without elements", stored()),
            ("with too many elements", stored(float_data=[1, 2, 3])),
            ("in another type's field", stored(int32_data=[1, 2])),
            ("of text in raw data", stored(data_type=TensorProto.STRING, raw_data=b"ab")),
            ("of no elements with bytes", stored(dims=[0], raw_data=b"1234")),
            ("in two fields", stored(raw_data=bytes(8), float_data=[1, 2])),
            ("in a segment", _segmented(weights())),
        )
    ),
    _case(_UNREAD, "two without names", model(initializers=[weights(name=""), weights(name="")])),
    *(
        _case(_UNREAD, f"Constant {name}", _left_over(**attributes))
        for name, attributes in (
            ("of two values", {"value_int": 1, "value_float": 2.0}),
            ("without elements", {"value": stored()}),
            ("that is text", {"value": "cpu"}),
            ("that is complex", {"value": weights(_COMPLEX)}),
            ("with too few bytes", {"value": stored(raw_data=b"1234")}),
        )
    ),
    _case(
        _UNREAD,
        "in a branch",
        branched(
            helper.make_graph(
                [node("Relu", "x", "a")], "then", [], [value("a")], [weights(_COMPLEX)]
            )
        ),
        RELU,
        {"x": X, "c": np.array(True)},
    ),
    _case(
        _DATA, "raw data and floats", added(stored(raw_data=W.tobytes(), float_data=[7, 8])), X + W
    ),
    _case(_DATA, "segment", added(_segmented(weights())), X + W),
    *(
        _case(
            _SPARSE,
            name,
            added(change=_with_sparse(sparse(elements, places, [5])), **_FIVE),
            np.array(sums, np.float32),
            _ONES,
        )
        for name, elements, places, sums in (
            ("sorted", [2, 3], [1, 3], [1, 3, 1, 4, 1]),
            ("not sorted", [3, 2], [3, 1], [1, 3, 1, 4, 1]),
            ("place twice", [3, 2], [3, 3], [1, 1, 1, 3, 1]),
            ("no elements", [], [], [1, 1, 1, 1, 1]),
        )
    ),
    *(
        _case(
            _SPARSE,
            name,
            added(change=_with_sparse(sparse([2, 3], places, [2, 3])), **_GRID),
            np.array([[1, 3, 1], [1, 1, 4]], np.float32),
            np.ones((2, 3), np.float32),
        )
        for name, places in (("by axis", [[0, 1], [1, 2]]), ("by number", [1, 5]))
    ),
    _case(
        _SPARSE,
        "beside a dense one",
        added(weights(), change=_with_sparse(sparse([2], [1], [2]))),
        X + np.array([0, 2], np.float32),
    ),
    _case(
        _SPARSE,
        "Constant",
        _constant(sparse_value=sparse([2, 3], [1, 3], [5])),
        np.array([0, 2, 0, 3, 0], np.float32),
        {},
    ),
    _case(_TEXTS, "one", _constant(value_string="ö"), np.array("ö", object), {}),
    _case(_TEXTS, "several", _constant(value_strings=["b", "a"]), np.array(["b", "a"], object), {}),
    _case(_ORDER, "two nodes", model([node("Neg", "a"), node("Relu", "x", "a")]), -RELU),
    _case(_EMPTY, "two", model([_NOTHING, node("Relu"), _NOTHING])),
    _case(_EMPTY, "of an unknown operator", model([helper.make_node("Odd", [], []), node("Relu")])),
    _case(_EMPTY, "one", model([node("Relu"), _NOTHING])),
    *(
        _case(_VALUES, f"value_info {name}", model(_TWO_NODES, value_info=described))
        for name, described in (
            ("twice", [value("a"), value("a")]),
            ("wrong shape", [value("a", (7, 3))]),
            ("no name", [value("")]),
            ("no such tensor", [value("nothing")]),
            ("other shape of an input", [value("x", (5,))]),
            ("no type", [untyped("a")]),
        )
    ),
    _case(_VALUES, "output without type", model(outputs=[untyped("y")])),
    *(
        _case(_VALUES, f"output of shape {shape}", model(outputs=[value("y", shape)]))
        for shape in ((3,), (2, 1), (-1,), None)
    ),
    _case(_VALUES, "input without shape", model(inputs=[value("x", None)])),
    _case(_DEFAULTS, "input", added(weights(), inputs=_PAIR), X + W),
    _case(_DEFAULTS, "form 3", added(weights(), change=_set(ir_version=3)), X + W),
    _case(
        _DEFAULTS,
        "input without type",
        added(weights(), inputs=_PAIR, change=_without("graph.input.1.type")),
        X + W,
    ),
    _case(_MISSING, "graph", model(change=_without("graph.name"))),
    _case(_MISSING, "as a tensor's", model([node("Relu", name="y")])),
    _case(_OPERANDS, "at the end", model([node("Clip", "x - -")]), X),
    _case(_OPERANDS, "of outputs", model([node("Dropout", "x", "y -")]), X),
    _case(_ATTRIBUTES, "no value", model(_LEAKY, change=_valueless)),
    _case(_ATTRIBUTES, "reference", model(_LEAKY, change=_referring)),
    *(
        _case(
            _FUNCTIONS,
            f"not called, with {name}",
            model(change=partial(_append_function, function(nodes))),
        )
        for name, nodes in (
            ("unknown operator", [node("Whatever", "a", "b")]),
            ("unknown attribute", [node("Neg", "a", "b", odd=1)]),
            ("two writers", [node("Neg", "a", "b"), node("Abs", "a", "b")]),
            ("nodes not sorted", [node("Neg", "q", "b"), node("Abs", "a", "q")]),
            ("a tensor that nothing writes", [node("Neg", "q", "b")]),
        )
    ),
    _case(
        _FUNCTIONS,
        "two inputs of one name",
        calling(function([node("Neg", "a", "b")], ("a", "a")), call=node("F", "x x", domain="my")),
        -X,
    ),
    _case(_FUNCTIONS, "other opset", calling(function([node("Neg", "a", "b")], opset=13)), -X),
    _case(
        _FUNCTIONS, "operand left out", calling(function([node("Neg", "a", "b")], ("a", "c"))), -X
    ),
    _case(
        _FUNCTIONS, "unknown attribute", calling(_NEGATED, call=node("F", domain="my", odd=1)), -X
    ),
    _case(_UNKNOWN, "field 1023", model() + b"\xfa\x3f\x03abc"),
    _case(_UNKNOWN, "training", model(change=lambda proto: proto.training_info.add())),
    _case(
        _UNKNOWN,
        "annotation",
        model(change=lambda proto: proto.graph.quantization_annotation.add(tensor_name="q")),
    ),
    _case(
        _UNKNOWN,
        "unused input",
        model(inputs=[value("x"), value("u")]),
        RELU,
        {"x": X, "u": X},
    ),
)
"""Models that ONNX Runtime runs."""


def _deep() -> bytes:
    """Functions that call each other."""
    functions = []
    for number in range(40):
        f = function([helper.make_node(f"F{number + 1}", ["a"], ["b"], domain="my")])
        f.name = f"F{number}"
        functions.append(f)
    return calling(*functions, call=helper.make_node("F0", ["x"], ["y"], domain="my"))


REFUSALS: Mapping[str, tuple[bytes, str]] = {
    "bytes that are no protocol buffer": (model() + b"\0\0", "not a sound ONNX file"),
    "no operator set": (model(change=imports()), "imports no operator set"),
    "an opset of ONNX's own below 1, or newer than the package": (
        model(opset=99),
        "Expected opset 1 to",
    ),
    "operators that armpy does not have": (
        model([node("Whatever")]),
        r"not supported: Whatever \(1\)",
    ),
    "operators that the imported opset does not have": (
        model([node("Gelu")], opset=13),
        "Gelu 'Gelu_0': the operator is not in the operator set. Got opset 13",
    ),
    "operators that the imported opset has deprecated": (
        model([node("Upsample", "x w")], initializers=[weights()], opset=13),
        "Upsample 'Upsample_0': the operator is deprecated. Expected an opset below 10",
    ),
    "a node without an operator": (
        model([node("Relu"), node("", "x", "z")]),
        "'op_type' is empty",
    ),
    "a number of inputs or outputs that the operator does not take": (
        model([node("Relu", "x x")]),
        "Relu 'Relu_0': the number of inputs is wrong. Expected 1; got 2",
    ),
    "attributes that the operator does not have": (
        model([node("LeakyRelu", odd=1)]),
        "LeakyRelu 'LeakyRelu_0', attribute 'odd': the operator has no such attribute. "
        "Expected alpha",
    ),
    "attributes of the wrong type, or without one": (
        model([node("LeakyRelu", alpha=1)]),
        "attribute 'alpha': its type is wrong. Expected FLOAT; got INT",
    ),
    "attributes whose value is in another field than their type says": (
        model(_LEAKY, change=lambda proto: setattr(proto.graph.node[0].attribute[0], "i", 3)),
        "attribute 'alpha': it has a value in another field .* Expected its value in 'f'",
    ),
    "attributes twice, without a name, or missing": (
        model(_LEAKY, change=_attribute_twice),
        "LeakyRelu_0', attribute 'alpha': the node has it twice",
    ),
    "a name that two inputs or outputs of nodes have": (
        model([node("Relu"), node("Neg")]),
        "Neg 'Neg_1': the tensor 'y' is there already",
    ),
    "inputs and outputs of the graph without a name": (
        model(inputs=[value("x"), value("")]),
        "input 1 of graph 'g': it has no name",
    ),
    "tensors that nothing writes": (
        model([node("Add", "x q")]),
        "Add 'Add_0': the tensor 'q' is read and not written before",
    ),
    "nodes in a circle": (
        model([node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "a")]),
        "circle. Got .*Add_0",
    ),
    "functions that call themselves, or two of one name": (
        calling(function([node("F", "a", "b", domain="my")])),
        "F 'F_0': the function calls itself",
    ),
    "inputs without an element type": (
        model(change=_without("graph.input.0.type.tensor_type.elem_type")),
        "input 'x': the element type is not supported",
    ),
    "elements that do not fit a tensor's shape or type": (
        added(stored(raw_data=b"1234")),
        "initializer 'w': the tensor cannot be read",
    ),
    "negative dimensions of constants that are read": (
        added(stored(dims=[-1], raw_data=W.tobytes())),
        "initializer 'w': a dimension is negative",
    ),
    "places outside of a sparse tensor, or more than 256 MiB of its elements": (
        added(change=_with_sparse(sparse([2], [7], [2]))),
        "sparse initializer 'w': an index is outside",
    ),
    "element types that armpy does not have": (
        added(weights(_COMPLEX)),
        "initializer 'w': the element type is not supported.*COMPLEX64",
    ),
    "graphs and functions that lie in each other more than 32 deep": (
        _deep(),
        "lie in each other too deeply",
    ),
    "attributes without a type": (
        model(_LEAKY, change=_without("graph.node.0.attribute.0.type")),
        "'alpha': it has no type",
    ),
}
"""Models that are refused, and what the message says, by rows of the table in the docs."""
