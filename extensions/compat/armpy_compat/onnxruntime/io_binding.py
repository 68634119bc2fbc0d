"""Arrays bound to a session's inputs and outputs."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.execution import Execution
from armpy_compat.onnxruntime.devices import OrtDevice, check_is_cpu
from armpy_compat.onnxruntime.element_types import as_bytes, given_type
from armpy_compat.onnxruntime.errors import InvalidArgument, status_error
from armpy_compat.onnxruntime.feeds import check_target
from armpy_compat.onnxruntime.ort_value import OrtValue, OrtValueVector
from armpy_compat.signatures import checked

_Array = npt.NDArray[Any]  # Any: elements of every type


class SessionIOBinding:
    """Arrays that a session reads, and where it writes, as ONNX Runtime's binding has them.

    Parameters
    ----------
    session : NativeSession

    Attributes
    ----------
    num_runs : int
        Runs since something was bound.
    execution : Execution, optional
        Runs with the same arrays, once there have been two.
    """

    def __init__(self, session: Any) -> None:  # Any: its class is made of this one
        self.session = session
        self._inputs = {argument.name for argument in session.inputs_meta}
        self._outputs = {argument.name: argument for argument in session.outputs_meta}
        self.input_arrays: dict[str, object] = {}
        self.output_arrays: dict[str, _Array | None] = {}
        self._bound_values: dict[str, OrtValue] = {}
        self._results: list[Any] = []
        self._handed_out: dict[str, OrtValue] = {}
        self.num_runs = 0
        self.execution: Execution | None = None

    def bind_input(self, name: str, *place: Any) -> None:  # Any: see below
        """Bind an input.

        Parameters
        ----------
        *place : object
            An array; or a device, an element type, a shape and an address.

        Raises
        ------
        RuntimeError
            If there is no such input, there is no array, or the device is not the processor.
        """
        array = place[0] if len(place) == 1 else _array_at(*place)
        if not isinstance(array, np.ndarray):
            text = f"Expected a numpy.ndarray; got {type(array).__name__}"
            raise RuntimeError(  # noqa: TRY004 - its kind there
                f"Unable to create OrtValue from the given python object. {text}"
            )
        self._bind_input(name, array)

    def _bind_input(self, name: str, value: object) -> None:
        """Bind an input of a name that the model has."""
        _check_name(name, self._inputs)
        self._change()
        self.input_arrays[name] = value

    @checked
    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an input to a value; raises as `bind_input`."""
        self._bind_input(name, ortvalue.content())

    def bind_output(self, name: str, device: OrtDevice, *place: Any) -> None:  # Any: see below
        """Bind an output.

        Parameters
        ----------
        *place : object
            Nothing, for an array that each run makes; or an element type, a shape and an address.

        Raises
        ------
        RuntimeError
            If there is no such output for an address, or the device is not the processor.
        """
        check_is_cpu(device)
        if place:
            _check_name(name, self._outputs)
        self._change()
        self._handed_out.pop(name, None)
        self.output_arrays[name] = _array_at(device, *place) if place else None

    @checked
    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an output to a value, whose elements each run writes."""
        content = ortvalue.content()
        self._change()
        self._handed_out.pop(name, None)
        self.output_arrays[name] = content if isinstance(content, np.ndarray) else None
        self._bound_values[name] = ortvalue

    def _change(self) -> None:
        """Forget runs with what was bound before."""
        self.num_runs, self.execution = 0, None

    def check_targets(self) -> None:
        """Check that the arrays that are bound can hold the outputs.

        Raises
        ------
        InvalidArgument
            If there is no output of a name, or its type, rank or a dimension differs.
        """
        unknown = self.output_arrays.keys() - self._outputs.keys()
        if unknown:
            raise status_error(InvalidArgument, f"Invalid output name: {min(unknown)}")
        for name, array in self.output_arrays.items():
            if array is not None:
                check_target(self._outputs[name], array)

    def set_results(self, results: list[Any]) -> None:
        """Keep the outputs of a run, and write those that have to be copied.

        Raises
        ------
        InvalidArgument
            If the array that is bound to one has another shape or type; nothing is written.
        """
        for (name, array), result in zip(self.output_arrays.items(), results, strict=True):
            if array is not None and not _has_form(array, result):
                raise status_error(
                    InvalidArgument,
                    f"The output OrtValue provided for output '{name}' has shape {array.shape} of"
                    f" {array.dtype}, but the computed output has shape {result.shape} of"
                    f" {result.dtype}. Bind an array of that shape, or none.",
                )
        self._results = results
        self.num_runs += 1
        for array, result in zip(self.output_arrays.values(), results, strict=True):
            if array is not None and array is not result:
                np.copyto(array, result)
        if self._handed_out:
            self._update_values(results)

    def _update_values(self, results: list[Any]) -> None:
        """Write the outputs of a run to the values that the program has of them."""
        for name, result in zip(self.output_arrays, results, strict=True):
            if name in self._handed_out and not _is_written(self._handed_out[name], result):
                del self._handed_out[name]

    def get_outputs(self) -> OrtValueVector:
        """Return the outputs of the latest run in the order in which they were bound."""
        # Later runs write to the same values, as in ONNX Runtime.
        for name, result in zip(self.output_arrays, self._results, strict=False):
            if name not in self._handed_out:
                self._handed_out[name] = self._bound_values.get(name) or OrtValue(result)
        return OrtValueVector(self._handed_out[name] for name in self.output_arrays)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Return the outputs of the latest run as arrays."""
        return [
            np.array(as_bytes(result)) if isinstance(result, np.ndarray) else result
            for result in self._results
        ]

    def synchronize_inputs(self) -> None:
        """Do nothing: inputs lie in the memory of the host."""

    def synchronize_outputs(self) -> None:
        """Do nothing: outputs lie in the memory of the host."""

    def clear_binding_inputs(self) -> None:
        """Unbind all inputs."""
        self._change()
        self.input_arrays.clear()

    def clear_binding_outputs(self) -> None:
        """Unbind all outputs."""
        self._change()
        self.output_arrays.clear()
        self._bound_values.clear()
        self._handed_out.clear()
        self._results = []


class IOBinding:
    """Arrays that `InferenceSession.run_with_iobinding` reads, and where it writes.

    Parameters
    ----------
    session : InferenceSession
    """

    def __init__(self, session: Any) -> None:  # Any: its class is made of this one
        self._iobinding = SessionIOBinding(session._sess)
        self.synchronize_inputs = self._iobinding.synchronize_inputs
        self.synchronize_outputs = self._iobinding.synchronize_outputs
        self.clear_binding_inputs = self._iobinding.clear_binding_inputs
        self.clear_binding_outputs = self._iobinding.clear_binding_outputs
        self.copy_outputs_to_cpu = self._iobinding.copy_outputs_to_cpu

    def bind_cpu_input(self, name: str, arr_on_cpu: object) -> None:
        """Bind an input to an array, which each run reads.

        Raises
        ------
        RuntimeError
            If there is no such input.
        """
        self._iobinding.bind_input(name, arr_on_cpu)

    @checked
    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: object,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Bind an input to memory at an address.

        Raises
        ------
        RuntimeError
            If there is no such input, or the device is not the processor.
        """
        device = OrtDevice.make(device_type, device_id)
        self._iobinding.bind_input(name, device, element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an input to a value; raises as `bind_cpu_input`."""
        self._iobinding.bind_ortvalue_input(name, ortvalue)

    @checked
    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: object = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Bind an output to memory at an address, or to an array that each run makes.

        Raises
        ------
        ValueError
            If type or shape are missing for an address.
        RuntimeError
            If the device is not the processor.
        """
        device = OrtDevice.make(device_type, device_id)
        if buffer_ptr is None:
            self._iobinding.bind_output(name, device)
            return
        if element_type is None or shape is None:
            raise ValueError(
                "`element_type` and `shape` are to be provided if pre-allocated memory is provided"
            )
        self._iobinding.bind_output(name, device, element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an output to a value, whose elements each run writes."""
        self._iobinding.bind_ortvalue_output(name, ortvalue)

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs of the latest run in the order in which they were bound."""
        return [*self._iobinding.get_outputs()]

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """Return the outputs of the latest run as a vector."""
        return self._iobinding.get_outputs()


def _is_written(value: OrtValue, result: object) -> bool:
    """Write a run's result to a value of an earlier run; False if it does not fit."""
    content = value.content()
    if content is result:
        return True
    if not isinstance(content, np.ndarray) or not _has_form(content, result):
        return False
    np.copyto(content, np.asarray(result))
    return True


def _has_form(array: _Array, result: object) -> bool:
    """Whether a run's result has the shape and the type of an array."""
    if not isinstance(result, np.ndarray):
        return False
    return bool(array.shape == result.shape and array.dtype == result.dtype)


def _check_name(name: str, names: Collection[str]) -> None:
    """Check the name of an input or output.

    Raises
    ------
    TypeError
        If it is not a text.
    RuntimeError
        If the model has none of this name.
    """
    if not isinstance(name, str):
        raise TypeError(f"incompatible function arguments. 'name': expected str; got {name!r}")
    if name not in names:
        raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")


def _array_at(
    device: OrtDevice, element_type: object, shape: Sequence[int], address: int
) -> _Array:
    """An array over memory at an address.

    Raises
    ------
    RuntimeError
        If the device is not the processor, the type is none of tensors, a dimension is negative,
        or the address is 0.
    """
    check_is_cpu(device)
    dtype = given_type(element_type)
    count = math.prod(shape)
    if any(dim < 0 for dim in shape) or count * dtype.itemsize > sys.maxsize:
        raise RuntimeError(f"shape must contain non-negative sizes of memory; got {list(shape)}")
    if not address and count:
        raise RuntimeError(f"the address of {count} elements of {dtype} is 0")
    buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.ndarray(tuple(shape), dtype, memoryview(buffer))
