"""Inputs of a model: tensors, and sequences of them whose lengths the caller says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import onnx

from armpy.core.dataclass import dataclass
from armpy.errors import LayerValidationError, ParserError, did_you_mean
from armpy.graph import Value
from armpy.graph.network import Network
from armpy.ops.composite import Composite, LayerBuilder
from armpy.plugins.hooks.front_end import FrontEndOptionError, ParseSettings
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
from armpy_onnx.element_types import data_type_of
from armpy_onnx.items import Item, ValueList
from armpy_onnx.items import tensors as tensors_of
from armpy_onnx.reading import declared_shape, dimension_name, dimension_names
from armpy_onnx.structures.walking import Scope, Walker


@dataclass(frozen=True, slots=True)
class TiedDimensions(Composite):
    """Inputs as they are, once their dimensions that share a name have one size."""

    input_names: tuple[str, ...]
    dimensions: tuple[tuple[str, ...], ...]
    """Names of the dimensions of each input; empty for inputs without any."""

    @property
    def num_outputs(self) -> int:
        """One per input."""
        return len(self.input_names)

    def decides(self, index: int) -> bool:
        """No elements are looked at."""
        return False

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The inputs' shapes."""
        return tuple(info.shape for info in inputs)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The inputs' types."""
        return tuple(info.data_type for info in inputs)

    def expand(self, build: LayerBuilder, inputs: Sequence[Any]) -> Sequence[Any]:
        """Check the sizes.

        Raises
        ------
        LayerValidationError
            If two differ.
        """
        sizes_by_name: dict[str, tuple[int, str]] = {}
        for name, names, value in zip(self.input_names, self.dimensions, inputs, strict=True):
            for dimension, size in zip(names, value.info.known_shape, strict=True):
                before, other = (
                    sizes_by_name.setdefault(dimension, (size, name)) if dimension else (size, "")
                )
                if size != before:
                    raise LayerValidationError(
                        f"the dimension '{dimension}' has two sizes",
                        where=f"input '{name}'",
                        expected=f"{before} as of input '{other}'",
                        actual=str(size),
                        fix="Give both inputs the same size there; if the file gives sizes that "
                        "differ one name, the front-end option tie_dimensions=False takes both",
                    )
        return inputs


class Inputs:
    """Adds a model's inputs to a network.

    Parameters
    ----------
    settings : ParseSettings
        Its option ``structures`` says what sequences and optionals hold, ``dimensions`` how large
        dimensions are that have a name, ``tie_dimensions`` whether one name has one size.
    """

    def __init__(self, network: Network, settings: ParseSettings) -> None:
        self._network = network
        self._structures = _mapping(settings, "structures")
        self._sizes = _mapping(settings, "dimensions")
        self._ties = settings.options.get("tie_dimensions") is not False
        for name, size in self._sizes.items():
            if type(size) is not int or size < 0:
                raise FrontEndOptionError(
                    f"the size of '{name}' is negative or not a whole number",
                    where="option 'dimensions'",
                    expected="a number of 0 or more",
                    actual=repr(size),
                )

    def check_names(self, graph: onnx.GraphProto) -> None:
        """Check that the names in the options are in a model's graph.

        Raises
        ------
        FrontEndOptionError
            If no input has such a dimension, or is such a sequence or optional.
        """
        held = [v.name for v in graph.input if v.type.WhichOneof("value") != "tensor_type"]
        _check_known("dimensions", self._sizes, dimension_names(graph), "input has the dimension")
        _check_known("structures", self._structures, held, "sequence or optional is the input")

    def add(self, value: onnx.ValueInfoProto) -> Item:
        """Add an input.

        Raises
        ------
        ParserError
            If it is not a tensor and not said to be there, or of a type that is not supported.
        """
        return self._of_type(value.type, value.name)

    def tie(self, values: Sequence[onnx.ValueInfoProto], scope: Scope, walker: Walker) -> None:
        """Let dimensions with one name have one size, unless the settings free them.

        Parameters
        ----------
        values : sequence of onnx.ValueInfoProto
            The model's inputs.
        scope : Scope
            Gets the inputs whose dimensions have been checked.
        """
        tensors = {
            value.name: tuple(map(dimension_name, value.type.tensor_type.shape.dim))
            for value in values
            if isinstance(item := scope.values.get(value.name), Value) and item.data is None
        }
        counts = Counter(name for names in tensors.values() for name in names if name)
        shared = {
            name
            for name, count in counts.items()
            if count > 1 and name not in self._sizes and self._ties
        }
        tied = {
            value: tuple(name if name in shared else "" for name in names)
            for value, names in tensors.items()
            if shared.intersection(names)
        }
        if tied:
            tied_tensors = tensors_of([scope.values[name] for name in tied])
            operation = TiedDimensions(tuple(tied), tuple(tied.values()))
            checked = walker.layers("dimensions", operation, tied_tensors)
            scope.values.update(zip(tied, checked, strict=True))

    def _of_type(self, kind: onnx.TypeProto, name: str) -> Item:
        which, where = kind.WhichOneof("value"), f"input '{name}'"
        if which == "tensor_type":
            return self._network.input(name, self._tensor_info(kind.tensor_type, name))
        if which == "optional_type":
            if name not in self._structures:
                raise ParserError(
                    "it has to be said whether the optional is there",
                    where=where,
                    fix=f"Give the option structures='{{\"{name}\": null}}', or true, or a length",
                )
            held = self._structures[name]
            return None if held is None else self._of_type(kind.optional_type.elem_type, name)
        if which != "sequence_type" or (
            kind.sequence_type.elem_type.WhichOneof("value") != "tensor_type"
        ):
            raise ParserError("only tensors can be inputs", where=where, actual=str(which))
        count = self._structures.get(name)
        if type(count) is not int or not 0 <= count <= _MOST_ELEMENTS:
            raise ParserError(
                "it has to be said how many tensors the sequence has",
                where=where,
                expected=f"0 to {_MOST_ELEMENTS}",
                actual=str(count),
                fix=f"Give the option structures='{{\"{name}\": 2}}'",
            )
        tensor = kind.sequence_type.elem_type.tensor_type
        info = self._tensor_info(tensor, name)
        values = [self._network.input(f"{name}[{number}]", info) for number in range(count)]
        return ValueList(tuple(values), info.data_type)

    def _tensor_info(self, tensor: onnx.TypeProto.Tensor, name: str) -> TensorInfo:
        """Type and shape of a tensor; dimensions without a size are open."""
        data_type = data_type_of(tensor.elem_type, f"input '{name}'")
        return TensorInfo(declared_shape(tensor, self._sizes), data_type)

    def output_shape(self, value: onnx.ValueInfoProto) -> Shape | None:
        """Shape that the model declares for an output; None if it declares none."""
        if value.type.WhichOneof("value") != "tensor_type":
            return None
        return declared_shape(value.type.tensor_type, self._sizes)


_MOST_ELEMENTS = 4096


def _check_known(option: str, used: Iterable[str], known: Iterable[str], noun: str) -> None:
    names = list(dict.fromkeys(known))
    for name in used:
        if name not in names:
            raise FrontEndOptionError(
                f"no {noun} '{name}'",
                where=f"option '{option}'",
                expected=", ".join(f"'{known}'" for known in names) or "no names: there are none",
                actual=f"'{name}'",
                fix=did_you_mean(name, names),
            )


def _mapping(settings: ParseSettings, name: str) -> dict[str, Any]:  # Any: as JSON has it
    """An option that is an object in JSON."""
    text = str(settings.options.get(name, ""))
    try:
        mapping = json.loads(text) if text else {}
    except ValueError as error:
        mapping = error
    if not isinstance(mapping, dict):
        raise FrontEndOptionError(
            f"the option '{name}' cannot be read",
            expected='an object in JSON, for example {"x": 2}',
            actual=repr(text),
        )
    return mapping
