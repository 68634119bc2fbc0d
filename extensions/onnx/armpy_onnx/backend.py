"""armpy with ONNX's own interface for backends, which its tests and other tools call.

Examples
--------
>>> from armpy_onnx import backend                                  # doctest: +SKIP
>>> (output,) = backend.prepare(model).run([image])                 # doctest: +SKIP

References
----------
ONNX, "Implementing an ONNX backend": `onnx.backend.base`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from armpy import load
from armpy.errors import InvalidArgumentError
from armpy.execution import Runtime
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_onnx.element_types import data_type_of, numpy_type, stored
from armpy_onnx.messages.canonical import initial_names

__all__ = ["OnnxBackend", "OnnxModel", "prepare", "run_model", "supports_device"]


class OnnxModel(BackendRep):  # type: ignore[misc]  # the package has no types
    """A prepared model that takes and gives arrays in the file's order.

    Parameters
    ----------
    load_model : callable
        Called with a model's bytes and options of the front-end.
    proto : onnx.ModelProto
        Source of the model.

    Notes
    -----
    A model that takes or gives sequences or optionals is loaded for each call: what these hold is
    part of a network's structure, and so are shapes and small integers, which may say it.
    """

    def __init__(self, load_model: Callable[..., Model], proto: onnx.ModelProto) -> None:
        initial = initial_names(proto.graph)
        self._inputs = [value for value in proto.graph.input if value.name not in initial]
        self._outputs = list(proto.graph.output)
        self._load = load_model
        self._proto = proto
        self.model: Model | None = None
        # What sequences hold decides on the network, which is made in `run` then.
        if all(map(_is_tensor, (*self._inputs, *self._outputs))):
            self.model = load_model(proto.SerializeToString())

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:  # Any: as `onnx` says it
        """Run the model.

        Parameters
        ----------
        inputs : sequence of (ndarray, list of ndarray or None), or mapping of str to them

        Returns
        -------
        tuple of (ndarray or list of ndarray)
            One per output.
        """
        if not isinstance(inputs, dict):
            in_order = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            if len(in_order) != len(self._inputs):
                raise InvalidArgumentError(
                    "the number of inputs is wrong",
                    expected=str(len(self._inputs)),
                    actual=str(len(in_order)),
                )
            inputs = {
                value.name: array for value, array in zip(self._inputs, in_order, strict=True)
            }
        model = self.model or self._loaded_for(inputs)
        arrays: dict[str, Array] = {}
        for value in self._inputs:
            arrays.update(_stored(value, inputs[value.name]))
        outputs = model.run({spec.name: arrays[spec.name] for spec in model.inputs})
        return tuple(_numpy(value, outputs) for value in self._outputs)

    def _loaded_for(self, inputs: dict[str, Any]) -> Model:  # Any: arrays, lists of them, None
        """The model for what sequences and optionals hold, for shapes, and for small integers."""
        structures: dict[str, object] = {}
        # A copy: the next call may bring others, for which the first one's constants would be
        # wrong.
        proto = onnx.ModelProto()
        proto.CopyFrom(self._proto)
        declared = {value.name: value for value in proto.graph.input}
        for value in self._inputs:
            held = inputs[value.name]
            if _is_tensor(value):
                _close_dimensions(declared[value.name].type.tensor_type, np.shape(held))
            if not _is_tensor(value):
                structures[value.name] = len(held) if isinstance(held, list) else held is not None
                if held is None:
                    structures[value.name] = None
            elif np.asarray(held).dtype.kind in "biu" and np.size(held) <= _MOST_DECIDING:
                proto.graph.initializer.add().CopyFrom(
                    onnx.numpy_helper.from_array(np.asarray(held), value.name)
                )
        options = {"structures": json.dumps(structures)}
        return self._load(proto.SerializeToString(), front_end_options=options)


_MOST_DECIDING = 64
"""Elements of an integer input that may say what sequences hold."""


def _close_dimensions(tensor: onnx.TypeProto.Tensor, shape: tuple[int, ...]) -> None:
    """Set the open dimensions of an input, from which lengths of sequences follow."""
    if not tensor.HasField("shape"):
        for _ in shape:
            tensor.shape.dim.add()
    # Another rank is an error of the call, which names both.
    if len(tensor.shape.dim) == len(shape):
        for dim, size in zip(tensor.shape.dim, shape, strict=True):
            if not dim.HasField("dim_value") or dim.dim_value < 0:
                dim.dim_value = size


def _is_tensor(value: onnx.ValueInfoProto) -> bool:
    """Return whether an input or output is a tensor."""
    return bool(value.type.WhichOneof("value") == "tensor_type")


class OnnxBackend(Backend):  # type: ignore[misc]  # the package has no types
    """The interface that ONNX's tests call."""

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto,
        device: str = "CPU",
        backends: Sequence[str] | None = None,
        runtime: Runtime | None = None,
        **kwargs: Any,  # Any: as `onnx` says it
    ) -> OnnxModel:
        """Load a model.

        Parameters
        ----------
        device : {"CPU"}
        runtime : Runtime, optional
            Runtime as of `armpy.load`.

        Raises
        ------
        ParserError
            Runtime as of `armpy.load`.
        """
        super().prepare(model, device, **kwargs)
        return OnnxModel(partial(load, front_end="onnx", backends=backends, runtime=runtime), model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device of ONNX's names is there: the CPU is."""
        return device == "CPU"


prepare = OnnxBackend.prepare
run_model = OnnxBackend.run_model
supports_device = OnnxBackend.supports_device


def _element_type(kind: onnx.TypeProto) -> int:
    """The type of the elements of a tensor, or of the tensors of a sequence or optional."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        return int(kind.tensor_type.elem_type)
    return _element_type(getattr(kind, which).elem_type)


def _stored(
    value: onnx.ValueInfoProto, argument: Any
) -> dict[str, Array]:  # Any: as `run` takes it
    """An input's tensors as armpy stores their elements, by their names in the network."""
    if argument is None:
        return {}
    data_type = data_type_of(_element_type(value.type), f"input '{value.name}'")
    if isinstance(argument, list) and not _is_tensor(value):
        return {
            f"{value.name}[{number}]": stored(np.asarray(array), data_type)
            for number, array in enumerate(argument)
        }
    return {value.name: stored(np.asarray(argument), data_type)}


def _numpy(value: onnx.ValueInfoProto, outputs: Mapping[str, Array]) -> Any:  # Any: as `run` gives
    """An output with NumPy's type for its elements, where these are stored as bits."""
    wanted = numpy_type(_element_type(value.type))
    names = [value.name]
    is_list = f"{value.name}[0]" in outputs or (
        not _is_tensor(value) and "sequence_type" in str(value.type)
    )
    if is_list:
        names = [f"{value.name}[{number}]" for number in range(int(outputs[value.name]))]
    arrays = [
        array if array.dtype == wanted else array.view(wanted)
        for array in (outputs[name] for name in names)
    ]
    return arrays if is_list else arrays[0]
