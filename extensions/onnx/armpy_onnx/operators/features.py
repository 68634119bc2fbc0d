"""Preparation of features, of the domain ai.onnx.ml."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx

from armpy.graph import Value
from armpy.ops.elementwise import (
    BinaryOperation,
    ComparisonOperation,
    LogicalBinary,
    LogicalBinaryOperation,
    UnaryOperation,
)
from armpy.ops.reduction import ArgMinMax, ArgMinMaxFunction, ReduceOperation
from armpy.ops.text import TableLookup
from armpy.types import DataType
from armpy_onnx.blocks import (
    binary,
    both,
    check_table,
    compared,
    demanded,
    filled,
    gathered,
    joined,
    reduced,
    reshaped,
    selected,
    taken,
    unary,
)
from armpy_onnx.element_types import data_type_of
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable


def _array_feature_extractor(node: Node) -> Value:
    value, indices = node.value(0), node.value(1)
    shape = node.shape(0)
    if not shape:
        raise node.error("the input has no axes", expected="rank 1 or more")
    count = math.prod(node.shape(1))
    flat = reshaped(node, indices, (count,))
    features = gathered(node, value, flat, len(shape) - 1)
    return reshaped(node, features, (1, count) if len(shape) == 1 else (*shape[:-1], count))


def _binarizer(node: Node) -> Value:
    value = node.value(0)
    threshold = node.real("threshold", 0.0)
    is_above = compared(node, ComparisonOperation.GREATER, value, threshold)
    return node.cast(is_above, node.type(0))


def _scaler(node: Node) -> Value:
    value = node.cast(node.value(0), DataType.FLOAT32)
    for name, operation in (("offset", BinaryOperation.SUB), ("scale", BinaryOperation.MUL)):
        numbers = np.array(node.attribute(name, ()), np.float32)
        if not numbers.size:
            continue
        if numbers.size not in (1, *node.shape(0)[-1:]):
            raise node.error(
                f"the attribute '{name}' has the wrong length",
                expected=f"1, or one for each feature of {node.shape(0)}",
                actual=numbers.size,
            )
        value = binary(node, operation, value, numbers)
    return value


def _normalizer(node: Node) -> Value:
    value = node.cast(node.value(0), DataType.FLOAT32)
    rank = node.rank(0)
    if not rank:
        raise node.error("the input has no axes", expected="rank 1 or more")
    norm = node.choice("norm", "MAX", {"MAX": "MAX", "L1": "L1", "L2": "L2"})
    if norm == "MAX":
        size = reduced(node, ReduceOperation.MAX, value, (rank - 1,), True)
    elif norm == "L1":
        sizes = unary(node, UnaryOperation.ABS, value)
        size = reduced(node, ReduceOperation.SUM, sizes, (rank - 1,), True)
    else:
        squares = unary(node, UnaryOperation.SQUARE, value)
        size = unary(
            node,
            UnaryOperation.SQRT,
            reduced(node, ReduceOperation.SUM, squares, (rank - 1,), True),
        )
    is_zero = compared(node, ComparisonOperation.EQUAL, size, 0)
    size = selected(node, is_zero, 1, size)
    return binary(node, BinaryOperation.DIV, value, size)


def _imputer(node: Node) -> Value:
    value = node.value(0)
    kind = "floats" if node.type(0).is_float else "int64s"
    type_name = kind.rstrip("s")
    imputed = np.array(node.attribute(f"imputed_value_{kind}", ()))
    replaced = node.attribute(f"replaced_value_{type_name}", 0)
    if not imputed.size:
        raise node.error("its values are missing", expected=f"imputed_value_{kind}")
    if imputed.size not in node.shape(0)[-1:]:
        imputed = imputed[:1]  # for all features, as ONNX Runtime takes it
    if isinstance(replaced, float) and math.isnan(replaced):
        is_missing = compared(node, ComparisonOperation.NOT_EQUAL, value, value)
    else:
        is_missing = compared(node, ComparisonOperation.EQUAL, value, replaced)
    return selected(node, is_missing, imputed, value)


def _feature_vectorizer(node: Node) -> Value:
    sizes = node.integers("inputdimensions")
    if len(sizes) != len(node.values) or min(sizes, default=0) < 0:
        raise node.error("there is not one size for each input", expected=str(len(node.values)))
    parts = []
    for index, size in enumerate(sizes):
        value, shape = node.cast(node.value(index), DataType.FLOAT32), node.shape(index)
        if not shape:
            raise node.error("an input has no axes", expected="rank 1 or more")
        # As ONNX Runtime: a vector is one row, and the axes after the first one are one axis.
        rows, columns = (shape[0], math.prod(shape[1:])) if len(shape) > 1 else (1, shape[0])
        value = taken(node, reshaped(node, value, (rows, columns)), 1, 0, min(size, columns))
        if size > columns:
            value = joined(node, (value, filled(node, value, (rows, size - columns), 0)), 1)
        parts.append(value)
    return joined(node, parts, 1)


def _equals(node: Node, value: Value, keys: Value) -> Value:
    """Whether each element equals each key, with a last axis for the keys; NaN equals NaN."""
    shape = value.info.known_shape
    check_table(node, (*shape, *keys.info.known_shape))
    spread = reshaped(node, value, (*shape, 1))
    is_equal = compared(node, ComparisonOperation.EQUAL, spread, keys)
    if not value.info.data_type.is_float:
        return is_equal
    odd = [compared(node, ComparisonOperation.NOT_EQUAL, x, x) for x in (spread, keys)]
    return node.layer(LogicalBinary(LogicalBinaryOperation.LOGICAL_OR), is_equal, both(node, *odd))


def _listed(node: Node, role: str) -> tuple[Value, DataType]:
    """The keys or values of a LabelEncoder."""
    if node.attribute(f"{role}_tensor") is not None:
        array, data_type = node.tensor(f"{role}_tensor")
        return node.constant(array.reshape(-1), data_type), data_type
    for name, data_type in _LISTS.items():
        attribute = f"{role}_{name}"
        is_strings = data_type is DataType.STRING
        keys = node.strings(attribute) if is_strings else node.attribute(attribute)
        if keys:
            return node.constant([*keys], data_type), data_type
    raise node.error(f"its {role} are missing", expected=", ".join(_LISTS))


def _label_encoder(node: Node) -> Value:
    if node.attribute("classes_strings") is not None:  # of the operator's first version
        classes = node.strings("classes_strings")
        return _category_lookup(node, classes, range(len(classes)))
    keys, _ = _listed(node, "keys")
    values, data_type = _listed(node, "values")
    count = keys.info.known_shape[0]
    if values.info.known_shape != (count,):
        raise node.error("there is not one value for each key", expected=str(count))
    if node.attribute("default_tensor") is not None:
        default = node.constant(node.tensor("default_tensor")[0].reshape(-1)[:1], data_type)
    else:
        name, usual = _DEFAULTS.get(data_type, ("", 0))
        default = node.constant([node.attribute(name, usual)], data_type)
    default = reshaped(node, default, ())
    key_type = keys.info.data_type
    if key_type.is_string or (data_type.is_string and key_type is not DataType.FLOAT64):
        # The first of equal keys counts here, and the last one in the layer.
        keys, values = (
            node.constant(np.asarray(table.data)[::-1], table.info.data_type)
            for table in (keys, values)
        )
        return _table_lookup(node, keys, values, default)
    is_key = _equals(node, node.cast(node.value(0), key_type), keys)
    rank = len(is_key.info.known_shape) - 1
    number = node.layer(
        ArgMinMax(ArgMinMaxFunction.MAX, rank, DataType.SIGNED32),
        node.cast(is_key, DataType.SIGNED32),
    )
    is_known = reduced(node, ReduceOperation.ANY, is_key, (rank,), False)
    if data_type.is_string:  # layers that choose take numbers alone
        number = selected(node, is_known, number, -1)
        numbers = node.constant(np.arange(count), DataType.SIGNED32)
        return node.layer(TableLookup(), number, numbers, values, default)
    mapped = gathered(node, values, number)
    return selected(node, is_known, mapped, default)


def _table_lookup(node: Node, keys: Value, values: Value, default: Value) -> Value:
    """The value of each key, of which one or the other is a string."""
    key_type = keys.info.data_type
    value = node.value(0) if key_type.is_string else node.cast(node.value(0), key_type)
    return node.layer(TableLookup(), value, keys, values, default)


def _category_mapper(node: Node) -> Value:
    numbers, strings = node.integers("cats_int64s"), node.strings("cats_strings")
    if len(numbers) != len(strings):
        raise node.error("there is not one number for each string", expected=str(len(strings)))
    return _category_lookup(node, strings, numbers)


def _category_lookup(node: Node, strings: Sequence[str], numbers: Sequence[int]) -> Value:
    """The number of each string, or the string of each number."""
    names = node.constant([*strings], DataType.STRING)
    codes = node.constant([*numbers], DataType.SIGNED64)
    if node.type(0).is_string:
        default = node.constant([node.integer("default_int64", -1)], DataType.SIGNED64)
        return _table_lookup(node, names, codes, default)
    default = node.constant([node.text("default_string", _UNUSED)], DataType.STRING)
    return _table_lookup(node, codes, names, default)


def _mapped_type(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    """Strings for numbers, and numbers for strings."""
    return DataType.SIGNED64 if types[0] is DataType.STRING else DataType.STRING


def _one_hot_encoder(node: Node) -> Value:
    if node.type(0).is_string:
        keys = node.constant([*node.strings("cats_strings")], DataType.STRING)
        is_key = _equals(node, node.value(0), keys)
    else:
        keys = node.constant(np.array(node.integers("cats_int64s"), np.int64), DataType.SIGNED64)
        is_key = _equals(node, node.cast(node.value(0), DataType.SIGNED64), keys)
    encoded = node.cast(is_key, DataType.FLOAT32)
    if node.flag("zeros", True):
        return encoded
    rank = node.rank(0)
    is_listed = reduced(node, ReduceOperation.ANY, is_key, (rank,), False)
    are_listed = reduced(node, ReduceOperation.ALL, is_listed, tuple(range(rank)), False)
    return demanded(node, are_listed, encoded, "an element is no category (zeros = 0)")


def _zip_map(node: Node) -> Value:
    """The values alone: columns are in the order of the keys, which are in the file."""
    return node.value(0)


_LISTS = {
    "int64s": DataType.SIGNED64,
    "floats": DataType.FLOAT32,
    "strings": DataType.STRING,
}

_UNUSED = "_Unused"

_DEFAULTS = {
    DataType.SIGNED64: ("default_int64", -1),
    DataType.FLOAT32: ("default_float", -0.0),
    DataType.FLOAT64: ("", -0.0),
    DataType.STRING: ("default_string", _UNUSED),
}


def _values_type(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    """The type of a LabelEncoder's values."""
    if data.attribute("classes_strings") is not None:
        return _mapped_type(data, types)
    tensor = data.attribute("values_tensor")
    if isinstance(tensor, onnx.TensorProto):
        return data_type_of(tensor.data_type, data.label)
    return next(
        (t for name, t in _LISTS.items() if data.attribute(f"values_{name}")), _LISTS["int64s"]
    )


OPERATORS: OperatorTable = {
    "ai.onnx.ml.ArrayFeatureExtractor": Operator(_array_feature_extractor),
    "ai.onnx.ml.Binarizer": Operator(_binarizer),
    "ai.onnx.ml.CategoryMapper": Operator(_category_mapper, types=(_mapped_type,)),
    "ai.onnx.ml.FeatureVectorizer": Operator(_feature_vectorizer, types=(DataType.FLOAT32,)),
    "ai.onnx.ml.Imputer": Operator(_imputer),
    "ai.onnx.ml.LabelEncoder": Operator(_label_encoder, types=(_values_type,)),
    "ai.onnx.ml.Normalizer": Operator(_normalizer, types=(DataType.FLOAT32,)),
    "ai.onnx.ml.OneHotEncoder": Operator(_one_hot_encoder, types=(DataType.FLOAT32,)),
    "ai.onnx.ml.Scaler": Operator(_scaler, types=(DataType.FLOAT32,)),
    "ai.onnx.ml.ZipMap": Operator(_zip_map),
}
