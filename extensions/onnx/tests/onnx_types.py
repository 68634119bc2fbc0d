"""Element types with which armpy runs ONNX's node tests, by operator and type variable.

A type variable is one of ONNX's definition of the operator, such as T. A type counts if armpy
converts and runs the test of the operator with tensors of this type; the results of ONNX's own
types are compared in `extensions/onnx/tests/test_backend_suite.py`.
"""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx.parser
from onnx.backend.test.case.node import collect_testcases

import armpy
from armpy.errors import ArmpyError
from armpy.ops.operation import Array
from armpy_onnx.element_types import DATA_TYPES, numpy_type
from armpy_onnx.reading import kind_of

from .onnx_nodes import NodeCase

Model: TypeAlias = Any  # Any: onnx.ModelProto, of a package without types

FACTS = Path(__file__).with_suffix(".json")
"""What `python -m lab.website.reference.onnx` has found out."""

_ROWS = np.array([[0.5, 1], [2, 3]], np.float32)
_WORDS = np.array([["a", "b"]], object)
_TREE: Mapping[str, object] = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [1.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
_MACHINE: Mapping[str, object] = {
    "kernel_type": "LINEAR",
    "kernel_params": [0.0, 0.0, 0.0],
    "coefficients": [1.0, -1.0],
    "support_vectors": [1.0, 0.0, 0.0, 1.0],
    "rho": [0.5],
}
_LEAVES = {"treeids": [0, 0], "nodeids": [1, 2], "weights": [1.0, 2.0]}

OWN_CASES = [
    NodeCase("GlobalLpPool", [np.ones((1, 2, 3, 3), np.float32)]),
    NodeCase(
        "MaxRoiPool",
        [np.ones((1, 1, 4, 4), np.float32), np.array([[0, 0, 0, 2, 2]], np.float32)],
        {"pooled_shape": [2, 2]},
    ),
    NodeCase("Multinomial", [_ROWS], {"sample_size": 2, "dtype": 6}),
    NodeCase("RandomNormalLike", [_ROWS], {"dtype": 1}),
    NodeCase("RandomUniformLike", [_ROWS], {"dtype": 1}),
    *(
        NodeCase("BitCast", [np.zeros(4, numpy_type(number))], {"to": number}, opset=26)
        for number in map(onnx.TensorProto.DataType.Value, ("UINT2", "UINT4", "UINT8", "UINT16"))
    ),
    *(
        NodeCase(f"ai.onnx.ml.{name}", inputs, attributes, outputs=2 if "Classifier" in name else 1)
        for name, inputs, attributes in (
            ("CategoryMapper", [_WORDS], {"cats_strings": ["a", "b"], "cats_int64s": [1, 2]}),
            ("FeatureVectorizer", [_ROWS], {"inputdimensions": [2]}),
            ("Imputer", [_ROWS], {"imputed_value_floats": [1.0], "replaced_value_float": 0.5}),
            (
                "Imputer",
                [_ROWS.astype(np.int64)],
                {"imputed_value_int64s": [1], "replaced_value_int64": 3},
            ),
            (
                "LinearClassifier",
                [_ROWS],
                {
                    "coefficients": [1.0, 2, 3, 4],
                    "intercepts": [0.0, 1],
                    "classlabels_ints": [0, 1],
                },
            ),
            ("LabelEncoder", [_ROWS], {"keys_floats": [1.0], "values_floats": [2.0]}),
            (
                "LabelEncoder",
                [_ROWS.astype(np.int64)],
                {"keys_int64s": [1], "values_int64s": [2]},
            ),
            ("LinearRegressor", [_ROWS], {"coefficients": [1.0, 2.0], "intercepts": [0.5]}),
            ("Normalizer", [_ROWS], {"norm": "MAX"}),
            ("OneHotEncoder", [_ROWS], {"cats_int64s": [1, 2]}),
            ("OneHotEncoder", [_WORDS], {"cats_strings": ["a", "b"]}),
            ("Scaler", [_ROWS], {"offset": [0.5], "scale": [2.0]}),
            (
                "SVMClassifier",
                [_ROWS],
                {**_MACHINE, "vectors_per_class": [1, 1], "classlabels_ints": [0, 1]},
            ),
            ("SVMRegressor", [_ROWS], {**_MACHINE, "n_supports": 2}),
            (
                "TreeEnsembleClassifier",
                [_ROWS],
                {
                    **_TREE,
                    **{f"class_{name}": values for name, values in _LEAVES.items()},
                    "class_ids": [0, 1],
                    "classlabels_int64s": [0, 1],
                },
            ),
            (
                "TreeEnsembleRegressor",
                [_ROWS],
                {
                    **_TREE,
                    **{f"target_{name}": values for name, values in _LEAVES.items()},
                    "target_ids": [0, 0],
                    "n_targets": 1,
                },
            ),
        )
    ),
]
"""Operators of which ONNX has no test, or not for all kinds of types."""

_DRAWING = """<ir_version: 10, opset_import: ["" : 22]>
g () => (float[2, 2] y) {{ y = {} <shape = [2, 2], dtype = 1> () }}"""

_MOST_CASES = 8
_ML_VERSION = 3
"""The last one with all operators."""
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype")
"""Attributes that say the type of an output."""


def facts() -> Mapping[str, Mapping[str, list[str]]]:
    """Types by operator and type variable."""
    types: dict[str, dict[str, list[str]]] = json.loads(FACTS.read_text("utf-8"))["types"]
    return types


def probe(kinds: Sequence[str]) -> None:
    """Try operators with the types of their definitions, and keep those that run."""
    types = {kind: types_of(kind) for kind in kinds}
    lines = ",\n".join(f"  {json.dumps(kind)}: {json.dumps(types[kind])}" for kind in kinds)
    head = f'{{"onnx": {json.dumps(onnx.__version__)}, "types": {{'
    FACTS.write_text(f"{head}\n{lines}\n}}}}\n", "utf-8")


def definitions(kind: str) -> list[Any]:  # Any: onnx.defs.OpSchema
    """All definitions of an operator that are not deprecated, the oldest first."""
    domain, _, name = kind.rpartition(".")
    return _definitions().get((domain, name), [])


@cache
def _definitions() -> Mapping[tuple[str, str], list[Any]]:  # Any: onnx.defs.OpSchema
    """Definitions by domain and name."""
    by_name: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated:
            by_name[schema.domain, schema.name].append(schema)
    for schemas in by_name.values():
        schemas.sort(key=lambda schema: schema.since_version)
    return dict(by_name)


@cache
def cases() -> Mapping[str, list[tuple[Model, list[Array]]]]:
    """ONNX's tests of one node whose inputs are tensors, by operator."""
    by_kind: dict[str, list[tuple[Model, list[Array]]]] = defaultdict(list)
    for name in ("RandomNormal", "RandomUniform"):
        by_kind[name].append((onnx.parser.parse_model(_DRAWING.format(name)), []))
    for own in OWN_CASES:
        by_kind[own.kind].append((_newest(own.model), [a for a in own.inputs if a is not None]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while the tests are computed
        for case in collect_testcases(None):
            model = case.model
            if model is None or len(model.graph.node) != 1 or "_expanded" in case.name:
                continue
            arrays = [_plain(item) for item in case.data_sets[0][0]]
            if all(isinstance(array, np.ndarray | np.generic) for array in arrays):
                by_kind[kind_of(model.graph.node[0])].append((model, arrays))
    return by_kind


def _newest(model: Model) -> Model:
    """A model whose other operator sets than ONNX's own are the newest ones."""
    for opset in model.opset_import:
        if opset.domain == "ai.onnx.ml":
            opset.version = _ML_VERSION
    return model


def _plain(item: Any) -> Any:  # Any: an array, a tensor, or a list of them
    """An input of a test; tensors as arrays."""
    return onnx.numpy_helper.to_array(item) if isinstance(item, onnx.TensorProto) else item


def types_of(kind: str) -> dict[str, list[str]]:
    """Types that an operator runs with, by type variable."""
    schema = definitions(kind)[-1]
    names: dict[str, list[str]] = {}
    for constraint in schema.type_constraints:
        variable = constraint.type_param_str
        for text in sorted(constraint.allowed_type_strs):
            element_type = element_type_of(text)
            if element_type is None:
                continue
            if any(map(_runs, _with_type(schema, kind, variable, element_type))):
                names.setdefault(variable, []).append(text.removeprefix("tensor(")[:-1])
    return names


def element_type_of(text: str) -> int | None:
    """The number of a type such as ``tensor(float)``; None if armpy has no such tensors."""
    name = text.removeprefix("tensor(").removesuffix(")")
    if name == text or "(" in name:
        return None
    number = int(onnx.TensorProto.DataType.Value(name.upper()))
    return number if number in DATA_TYPES else None


def _with_type(
    schema: Any, kind: str, variable: str, element_type: int
) -> Iterator[tuple[Model, list[Array]]]:
    """The first tests of an operator in which a type variable has a type."""
    tried = 0
    for source, arrays in cases().get(kind, ()):
        model = onnx.ModelProto()
        model.CopyFrom(source)
        graph, node = model.graph, model.graph.node[0]
        places = _places(schema.inputs, node.input, variable)
        if not places and not _set_output_type(node, schema, variable, element_type):
            continue
        names = {node.input[place] for place in places}
        names |= {node.output[place] for place in _places(schema.outputs, node.output, variable)}
        changed = list(arrays)
        for number, value in enumerate(graph.input):
            if value.name in names:
                changed[number] = _as_type(arrays[number], element_type)
        for value in (*graph.input, *graph.output):
            if value.name in names:
                value.type.tensor_type.elem_type = element_type
        yield model, changed
        tried += 1
        if tried == _MOST_CASES:
            return


def _places(operands: Sequence[Any], names: Sequence[str], variable: str) -> list[int]:
    """Numbers of the operands of a node that have a type variable."""
    return [
        number
        for number, name in enumerate(names)
        if name and operands and operands[min(number, len(operands) - 1)].type_str == variable
    ]


def _set_output_type(node: Any, schema: Any, variable: str, element_type: int) -> bool:
    """Set the attribute of a node that says an output's type; False if it has none."""
    if not _places(schema.outputs, node.output, variable):
        return False
    for attribute in node.attribute:
        if attribute.name in _TYPE_ATTRIBUTES:
            attribute.i = element_type
            return True
        if attribute.name == "value":
            array = onnx.numpy_helper.to_array(attribute.t)
            tensor = onnx.numpy_helper.from_array(_as_type(array, element_type))
            attribute.t.CopyFrom(tensor)
            return True
    return False


def _as_type(array: Array, element_type: int) -> Array:
    """An array of a type with about the same elements."""
    array = np.asarray(array)
    if array.dtype.kind == "V":  # of `ml_dtypes`, which do not convert to each other
        array = array.astype(np.float32)
    if element_type == onnx.TensorProto.STRING:
        return array.astype(str).astype(object)
    if array.dtype.kind in "OUS":
        return np.ones(array.shape, numpy_type(element_type))
    with np.errstate(all="ignore"):
        return array.astype(numpy_type(element_type))


@cache
def _runtime() -> armpy.Runtime:
    return armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"]))


def _runs(case: tuple[Model, list[Array]]) -> bool:
    """Whether armpy converts and runs a test."""
    model, arrays = case
    feeds = {v.name: array for v, array in zip(model.graph.input, arrays, strict=True)}
    try:
        with armpy.load(model.SerializeToString(), front_end="onnx", runtime=_runtime()) as loaded:
            loaded.run(feeds)
    except ArmpyError:
        return False
    return True


def refused_versions(kind: str) -> list[int]:
    """Versions of an operator's definition that allow one of its tests, which armpy refuses."""
    refused = []
    for schema in definitions(kind):
        allowed = list(_in_version(kind, schema.domain, schema.since_version))
        if allowed and not any(map(_runs, allowed)):
            refused.append(schema.since_version)
    return refused


def _in_version(kind: str, domain: str, version: int) -> Iterator[tuple[Model, list[Array]]]:
    """Tests of an operator that its definition of a version allows."""
    for source, arrays in cases().get(kind, ())[:_MOST_CASES]:
        model = onnx.ModelProto()
        model.CopyFrom(source)
        for opset in model.opset_import:
            if opset.domain == domain:
                opset.version = version
        try:
            onnx.checker.check_model(model)
        except onnx.checker.ValidationError:
            continue
        yield model, arrays
