"""armpy behind ONNX's own interface for backends, which its tests and other tools call.

Examples
--------
>>> from armpy import onnx_backend                                  # doctest: +SKIP
>>> (output,) = onnx_backend.prepare(model).run([image])            # doctest: +SKIP

References
----------
ONNX, "Implementing an ONNX backend": `onnx.backend.base`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from armpy.errors import InvalidArgumentError
from armpy.frontends.onnx.element_types import data_type_of, numpy_type, stored
from armpy.loading import load
from armpy.ops.operation import Array
from armpy.runtime import Model, Runtime

__all__ = ["OnnxBackend", "OnnxModel", "prepare", "run_model", "supports_device"]


class OnnxModel(BackendRep):  # type: ignore[misc]  # the package has no types
    """A prepared model that takes and gives arrays in the file's order.

    Parameters
    ----------
    model : Model
    proto : onnx.ModelProto
        What it was made of.
    """

    def __init__(self, model: Model, proto: onnx.ModelProto) -> None:
        self.model = model
        initial = {tensor.name for tensor in proto.graph.initializer}
        self._inputs = [value for value in proto.graph.input if value.name not in initial]
        self._outputs = list(proto.graph.output)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Array, ...]:  # Any: as `onnx` says it
        """Run the model.

        Parameters
        ----------
        inputs : sequence of ndarray, or mapping of str to ndarray

        Returns
        -------
        tuple of ndarray
            One per output.
        """
        if not isinstance(inputs, dict):
            given = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            if len(given) != len(self._inputs):
                raise InvalidArgumentError(
                    "the number of inputs is wrong",
                    expected=str(len(self._inputs)),
                    actual=str(len(given)),
                )
            inputs = {value.name: array for value, array in zip(self._inputs, given, strict=True)}
        arrays = {value.name: _stored(value, inputs[value.name]) for value in self._inputs}
        outputs = self.model.run(arrays)
        return tuple(_numpy(value, outputs[value.name]) for value in self._outputs)


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
        model : onnx.ModelProto
        device : {"CPU"}
        backends : sequence of str, optional
        runtime : Runtime, optional
            As of `armpy.load`.

        Raises
        ------
        ParserError
            As of `armpy.load`.
        """
        super().prepare(model, device, **kwargs)
        loaded = load(
            model.SerializeToString(), front_end="onnx", backends=backends, runtime=runtime
        )
        return OnnxModel(loaded, model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device of ONNX's names is there: the CPU is."""
        return device == "CPU"


prepare = OnnxBackend.prepare
run_model = OnnxBackend.run_model
supports_device = OnnxBackend.supports_device


def _stored(value: onnx.ValueInfoProto, array: object) -> Array:
    """An input as armpy stores its elements."""
    data_type = data_type_of(value.type.tensor_type.elem_type, f"input '{value.name}'")
    return stored(np.asarray(array), data_type)


def _numpy(value: onnx.ValueInfoProto, array: Array) -> Array:
    """An output with NumPy's type for its elements, where these are stored as bits."""
    wanted = numpy_type(value.type.tensor_type.elem_type)
    return array if array.dtype == wanted else array.view(wanted)
