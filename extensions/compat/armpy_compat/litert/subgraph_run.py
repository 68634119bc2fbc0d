"""Run of one subgraph: shapes of its inputs, arrays, and the execution bound to them."""

from __future__ import annotations

import operator
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from armpy.errors import ArmpyError
from armpy.ops.operation import Array
from armpy_compat.litert import texts
from armpy_compat.litert.model_provider import ModelProvider
from armpy_compat.litert.strings import to_bytes, to_strings
from armpy_compat.litert.tensor_memory import TensorMemory

if TYPE_CHECKING:
    import armpy


class SubgraphRun:
    """One subgraph between the calls of an interpreter.

    Parameters
    ----------
    index : int
        Number of the subgraph.
    preserves_all : bool
        Whether callers get every tensor that a run computes.

    Attributes
    ----------
    memory : TensorMemory
        Memory of the inputs, and of the outputs whose shapes are known; empty until `allocate`.
    """

    def __init__(self, provider: ModelProvider, index: int, preserves_all: bool) -> None:
        self._provider = provider
        self._index = index
        self._preserves_all = preserves_all
        self.subgraph = provider.file.subgraphs[index]
        self.memory = TensorMemory({})
        self._shapes = {i: self.subgraph.tensors[i].shape for i in self.subgraph.inputs}
        self._execution: armpy.Execution | None = None
        self._model: armpy.Model | None = None
        self._output_names: dict[int, str] = {}
        self._computed: dict[str, Array] = {}
        counts = Counter(tensor.name for tensor in self.subgraph.tensors)
        self._unique_names = {name for name, count in counts.items() if count == 1}
        self._has_run = False

    def resize(self, index: int, shape: Any, strict: bool) -> None:  # Any: as callers give it
        """Choose the shape of an input; `allocate` has to follow.

        Raises
        ------
        ValueError
            If the shape is not one-dimensional.
        RuntimeError
            If there is no such input, or the shape cannot be used.
        """
        sizes = np.array(shape, np.int32)
        if sizes.ndim != 1:
            raise ValueError(f"Shape should be 1D instead of {sizes.ndim}.")
        if index not in self._shapes:
            raise RuntimeError(f"tensor {index} is not an input, and armpy resizes inputs alone")
        new: list[int] = sizes.tolist()
        if strict:
            tensor, old = self.subgraph.tensors[index], self._shapes[index]
            if why := texts.strict_misfit(index, tensor, old, new):
                raise RuntimeError(why)
        if any(size < 0 for size in new):
            raise RuntimeError(f"BytesRequired number of elements overflowed: {new}")
        if tuple(new) != self._shapes[index]:
            self._shapes[index] = tuple(new)
            self._execution = None
            self.memory = TensorMemory({})

    def allocate(self) -> None:
        """Prepare the model for the inputs' shapes, and make arrays.

        Raises
        ------
        RuntimeError
            If armpy cannot load or reshape the model.
        """
        if self._execution is not None:
            return
        shapes = [self._model_shape(index) for index in self._shapes]
        model = self._provider.with_shapes(self._index, shapes)
        try:
            self._bind(model)
        except ArmpyError as error:
            raise RuntimeError(str(error)) from error
        self._has_run = False
        self._computed.clear()

    def _bind(self, model: armpy.Model) -> None:
        """Bind the model to new arrays."""
        arrays, named = {}, {}
        for spec, index in zip(model.inputs, self._shapes, strict=True):
            array = np.zeros(self._model_shape(index), spec.data_type.dtype)
            if spec.data_type.is_string:
                array.fill("")
            arrays[index] = named[spec.name] = array
        debug = self._keep if self._preserves_all else None
        execution = model.bind(named, debug=debug)
        self._output_names = self._named_outputs(model)
        for index, name in self._output_names.items():
            if name in execution.outputs:
                arrays.setdefault(index, execution.outputs[name])
        self.memory = TensorMemory({i: self._typed(i, array) for i, array in arrays.items()})
        self._model, self._execution = model, execution

    def _named_outputs(self, model: armpy.Model) -> dict[int, str]:
        """The model's names of outputs by tensor index."""
        names = [spec.name for spec in model.outputs]
        if not self._index:
            # A file that lists no outputs has some for armpy, of which callers know nothing.
            return dict(zip(self.subgraph.outputs, names, strict=bool(self.subgraph.outputs)))
        signatures = self._provider.file.signatures.values()
        outputs = next(
            signature.outputs for signature in signatures if signature.subgraph == self._index
        )
        return {outputs[name]: name for name in names if name in outputs}

    def _model_shape(self, index: int) -> tuple[int, ...]:
        """The shape that armpy's model has for an input: complex numbers are pairs of floats."""
        shape = self._shapes[index]
        return (*shape, 2) if self.subgraph.tensors[index].dtype is np.complex64 else shape

    def _typed(self, index: int, array: Array) -> Array:
        """An array with the element type that callers know, where armpy has another."""
        dtype = self.subgraph.tensors[index].dtype
        if array.dtype.hasobject or dtype is None or array.dtype.type is dtype:
            return array
        typed = array.view(dtype)
        return typed if typed.itemsize == array.itemsize else typed[..., 0]

    def _keep(self, value: armpy.DebugValue) -> None:
        """Keep a tensor that a layer has computed, if no other has its name."""
        if value.tensor in self._unique_names:
            self._computed[value.tensor] = value.values

    def invoke(self) -> None:
        """Run.

        Raises
        ------
        RuntimeError
            If the tensors are not allocated, or the run fails.
        """
        execution = self._execution
        if execution is None:
            raise RuntimeError(texts.NOT_READY)
        try:
            execution()
        except ArmpyError as error:
            raise RuntimeError(str(error)) from error
        self._has_run = True

    def set(self, index: int, value: object) -> None:
        """Copy an array to an input, or to the array of an output.

        Raises
        ------
        ValueError
            If there is no such tensor, or the array does not fit.
        """
        target = self.memory.arrays.get(index)
        if not (
            value.__class__ is np.ndarray
            and target is not None
            and value.dtype is target.dtype
            and value.shape == target.shape
            and not target.dtype.hasobject  # whose elements may be bytes
        ):
            value = self._fitting(index, value)
            target = self.memory.arrays.get(index)
            if target is None:
                raise ValueError(self._why_not_set(index))
        target[...] = value

    def _fitting(self, index: int, value: object) -> Array:
        """An array that fits a tensor."""
        tensor = self.subgraph.tensors[self.checked(index)]
        array = np.asarray(value)
        why = texts.misfit(tensor, index, self.shape(index), array)
        if why:
            raise ValueError(why)
        if tensor.type_name == "STRING":
            return to_strings(array)
        return array

    def _why_not_set(self, index: int) -> str:
        """Why a tensor cannot be written."""
        if index in self._shapes or index in self.subgraph.outputs:
            return texts.UNALLOCATED
        return f"Cannot set tensor: tensor {index} is neither an input nor an output"

    def get(self, index: int) -> Any:  # Any: a scalar where LiteRT returns one
        """Copy a tensor.

        Raises
        ------
        ValueError
            If there is no such tensor, or it has no elements now.
        """
        array = self.array(index)
        if array.dtype.hasobject:
            return to_bytes(array)
        return array.copy() if array.ndim else array[()]

    def view(self, index: int) -> Array:
        """View an input or output in place; constants and strings are copied."""
        array = self.array(index)
        return self.get(index) if array.dtype.hasobject else self.memory.view(array)

    def array(self, index: int) -> Array:
        """The array of a tensor.

        Raises
        ------
        ValueError
            If there is no such tensor, or it has no elements now.
        """
        array = self.memory.arrays.get(index)
        if array is not None:
            return array
        tensor = self.subgraph.tensors[self.checked(index)]
        if self._has_run and self._execution is not None:
            name = self._output_names.get(index)
            if name is not None:
                return self._typed(index, self._execution.outputs[name])
            if tensor.name in self._computed:
                return self._typed(index, self._computed[tensor.name])
        if tensor.stored.size:
            return tensor.constant()
        raise ValueError(self._why_no_data(index))

    def _why_no_data(self, index: int) -> str:
        """Why a tensor has no elements now."""
        if self._execution is None or index in self._output_names or self._preserves_all:
            return texts.NO_DATA
        return f"{texts.NO_DATA}, or set experimental_preserve_all_tensors to get this tensor"

    def checked(self, index: int) -> int:
        """Check an index of a tensor.

        Raises
        ------
        ValueError
            If there is no such tensor.
        """
        number = operator.index(index)
        if not 0 <= number < len(self.subgraph.tensors):
            raise texts.no_tensor(number, len(self.subgraph.tensors))
        return number

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of a tensor now."""
        if index in self._shapes:
            return self._shapes[index]
        try:
            known = index in self._output_names and self._execution is not None
            return self.array(index).shape if known else self.subgraph.tensors[index].shape
        except ValueError:  # an output whose shape the first run decides
            return self.subgraph.tensors[index].shape

    def reset_variables(self) -> None:
        """Give the state between calls its initial elements again."""
        if self._model is not None:
            self._model.reset_state()
