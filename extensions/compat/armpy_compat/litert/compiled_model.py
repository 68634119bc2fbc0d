"""CompiledModel: LiteRT 2's way to run a model on buffers, over `armpy.load`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from armpy_compat.litert.environment import Environment, EnvironmentOptions
from armpy_compat.litert.file_records import SignatureEntry, SubgraphEntry
from armpy_compat.litert.hardware_accelerator import HardwareAccelerator
from armpy_compat.litert.model_provider import ModelProvider
from armpy_compat.litert.model_runs import ModelRuns
from armpy_compat.litert.options import CpuKernelMode, CpuOptions, GpuOptions, Options
from armpy_compat.litert.subgraph_run import SubgraphRun
from armpy_compat.litert.tensor_buffer import TensorBuffer

__all__ = [
    "CompiledModel",
    "CpuKernelMode",
    "CpuOptions",
    "Environment",
    "EnvironmentOptions",
    "GpuOptions",
    "HardwareAccelerator",
    "Options",
    "TensorBuffer",
]

Details = dict[str, Any]  # Any: each key has a type of its own

_UNNAMED = "<placeholder signature>"
"""The signature of a file that has none."""


class CompiledModel:
    """A model that is run on buffers; made by `from_file` or `from_buffer`.

    Parameters
    ----------
    source : path or bytes
        Path or contents of a .tflite file.
    options : mapping of str to object
        Options of `armpy.load`.

    Raises
    ------
    RuntimeError
        If the file cannot be read, or armpy cannot load the model.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes,
        options: Mapping[str, Any],  # Any: as `armpy.load` takes them
        environment: Environment | None = None,
    ) -> None:
        kind = "buffer" if isinstance(source, bytes) else "file"
        try:
            provider = ModelProvider(source, options)
        except ValueError as error:
            raise RuntimeError(f"Failed to load model from {kind}\n{error}") from error
        self.environment = environment or Environment.create()
        self._model: ModelRuns | None = ModelRuns(provider, preserves_all=False)
        self._signatures = _ordered_signatures(self._model)
        self._model.main.allocate()

    @classmethod
    def from_file(
        cls,
        model_path: str,
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
    ) -> CompiledModel:
        """Load a file.

        Parameters
        ----------
        hardware_accel : HardwareAccelerator, optional
            Kinds of devices, in place of `options`; all installed backends if both are left out.

        Raises
        ------
        ValueError
            If both are given.
        RuntimeError
            If the model cannot be loaded.
        """
        return cls(model_path, _load_options(hardware_accel, options), environment)

    @classmethod
    def from_buffer(
        cls,
        model_data: bytes,
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
    ) -> CompiledModel:
        """Load the contents of a file, as `from_file`."""
        return cls(bytes(model_data), _load_options(hardware_accel, options), environment)

    def close(self) -> None:
        """Give the model back; it cannot be used any more."""
        self._model = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Names of each signature's inputs and outputs, in the file's order."""
        return {
            name: {"inputs": [*signature.inputs], "outputs": [*signature.outputs]}
            for name, signature in self._signatures.items()
        }

    def get_signature_by_index(self, index: int) -> Details:
        """Name, inputs and outputs of a signature.

        Raises
        ------
        RuntimeError
            If there is none of that index.
        """
        name, signature = self._by_index(index)
        inputs, outputs = [*signature.inputs], [*signature.outputs]
        return {"key": name, "inputs": inputs, "outputs": outputs}

    def get_num_signatures(self) -> int:
        """Number of signatures; 1 for a file without any."""
        return len(self._signatures)

    def get_signature_index(self, key: str) -> int:
        """Index of a signature; -1 if there is none of that name."""
        return [*self._signatures].index(key) if key in self._signatures else -1

    def get_input_tensor_details(self, signature_key: str) -> dict[str, Details]:
        """Describe the inputs of a signature by name.

        Raises
        ------
        RuntimeError
            If there is no such signature.
        """
        signature = self._by_name(signature_key)
        return self._details(signature, signature.inputs)

    def get_output_tensor_details(self, signature_key: str) -> dict[str, Details]:
        """Describe the outputs of a signature by name, as `get_input_tensor_details`."""
        signature = self._by_name(signature_key)
        self._run_of(signature).allocate()
        return self._details(signature, signature.outputs)

    def get_input_buffer_requirements(self, input_index: int, signature_index: int = 0) -> Details:
        """Size of an input's buffer, and kinds of memory: 1 is the host's.

        Raises
        ------
        RuntimeError
            If there is no such input.
        """
        _, signature = self._by_index(signature_index)
        return self._requirements(signature, [*signature.inputs.values()], input_index)

    def get_output_buffer_requirements(
        self, output_index: int, signature_index: int = 0
    ) -> Details:
        """Size of an output's buffer, as `get_input_buffer_requirements`."""
        _, signature = self._by_index(signature_index)
        return self._requirements(signature, [*signature.outputs.values()], output_index)

    def is_fully_accelerated(self) -> bool:
        """Return True: armpy has no other runtime to leave operators to."""
        return True

    def create_input_buffer_by_name(self, signature_key: str, input_name: str) -> TensorBuffer:
        """Make a buffer for an input.

        Raises
        ------
        RuntimeError
            If there is no such signature or input.
        """
        signature = self._by_name(signature_key)
        if input_name not in signature.inputs:
            _fail(6, f"Input tensor not found: {input_name}")
        return self._buffer(signature, signature.inputs[input_name])

    def create_output_buffer_by_name(self, signature_key: str, output_name: str) -> TensorBuffer:
        """Make a buffer for an output, as `create_input_buffer_by_name`."""
        signature = self._by_name(signature_key)
        if output_name not in signature.outputs:
            _fail(6, f"Output tensor not found: {output_name}")
        return self._buffer(signature, signature.outputs[output_name])

    def create_input_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Make a buffer for each input of a signature; RuntimeError if there is no such one."""
        _, signature = self._by_index(signature_index)
        return [self._buffer(signature, index) for index in signature.inputs.values()]

    def create_output_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Make a buffer for each output of a signature; RuntimeError if there is no such one."""
        _, signature = self._by_index(signature_index)
        return [self._buffer(signature, index) for index in signature.outputs.values()]

    def resize_input_tensor(
        self, input_index: int, dims: Sequence[int], signature_index: int = 0, strict: bool = True
    ) -> None:
        """Choose the shape of an input; buffers are made anew after it.

        Raises
        ------
        RuntimeError
            If there is no such input, or the shape cannot be used.
        """
        _, signature = self._by_index(signature_index)
        indexes = [*signature.inputs.values()]
        if not 0 <= input_index < len(indexes):
            _fail(1000, "Input index out of range")
        try:
            self._run_of(signature).resize(indexes[input_index], [*dims], strict)
        except RuntimeError as error:
            raise RuntimeError(f"CompiledModel error: code=1, message={error}") from error

    def resize_input_tensor_by_name(
        self, signature_key: str, input_name: str, dims: Sequence[int], strict: bool = True
    ) -> None:
        """`resize_input_tensor` by names; ValueError if there are none such."""
        if signature_key not in self._signatures:
            raise ValueError(f"Unknown signature: {signature_key}")
        names = [*self._signatures[signature_key].inputs]
        if input_name not in names:
            raise ValueError(f"Unknown input '{input_name}' for signature '{signature_key}'")
        index = self.get_signature_index(signature_key)
        self.resize_input_tensor(names.index(input_name), dims, index, strict)

    def run_by_name(
        self,
        signature_key: str,
        input_map: Mapping[str, TensorBuffer],
        output_map: Mapping[str, TensorBuffer],
    ) -> None:
        """Run a signature on buffers by name.

        Raises
        ------
        RuntimeError
            If a buffer is missing or does not fit, or the run fails.
        """
        signature = self._by_name(signature_key)
        for kind, names, buffers in (
            ("input", signature.inputs, input_map),
            ("output", signature.outputs, output_map),
        ):
            if not names.keys() <= buffers.keys():
                _fail(6, f"The given map is missing some {kind} TensorBuffers")
        inputs = [input_map[name] for name in signature.inputs]
        self._invoke(signature, inputs, [output_map[name] for name in signature.outputs])

    def run_by_index(
        self,
        signature_index: int,
        input_buffers: Sequence[TensorBuffer],
        output_buffers: Sequence[TensorBuffer],
    ) -> None:
        """Run a signature on buffers in order, as `run_by_name`."""
        _, signature = self._by_index(signature_index)
        if len(input_buffers) != len(signature.inputs):
            _fail(
                3,
                f"Input buffer size mismatch: number of inputs:{len(signature.inputs)}"
                f" vs buffers:{len(input_buffers)}",
            )
        if len(output_buffers) != len(signature.outputs):
            _fail(3, "Output buffer size mismatch")
        self._invoke(signature, input_buffers, output_buffers)

    def _invoke(
        self,
        signature: SignatureEntry,
        inputs: Sequence[TensorBuffer],
        outputs: Sequence[TensorBuffer],
    ) -> None:
        """Copy the inputs, run, and copy the outputs."""
        run = self._run_of(signature)
        run.allocate()
        for index, buffer in zip(signature.inputs.values(), inputs, strict=True):
            _copy(buffer.capsule, run.array(index))
        run.invoke()
        for index, buffer in zip(signature.outputs.values(), outputs, strict=True):
            _copy(run.array(index), buffer.capsule)

    def _runs(self) -> ModelRuns:
        """The model's runs.

        Raises
        ------
        RuntimeError
            If the model is closed.
        """
        if self._model is None:
            raise RuntimeError("the compiled model is closed")
        return self._model

    def _run_of(self, signature: SignatureEntry) -> SubgraphRun:
        return self._runs()[signature.subgraph]

    def _by_name(self, key: str) -> SignatureEntry:
        if key not in self._signatures:
            _fail(6, f"Signature not found: {key}")
        return self._signatures[key]

    def _by_index(self, index: int) -> tuple[str, SignatureEntry]:
        if not 0 <= index < len(self._signatures):
            _fail(1000, "Signature index is out of range of signature keys")
        return [*self._signatures.items()][index]

    def _details(self, signature: SignatureEntry, tensors: Mapping[str, int]) -> dict[str, Details]:
        """Descriptions of tensors by name."""
        details_by_name = {}
        for name, index in tensors.items():
            details = self._runs().details(index, signature.subgraph)
            details_by_name[name] = {
                "name": details["name"],
                "index": index,
                "dtype": np.dtype(details["dtype"]).name,
                "shape": details["shape"].tolist(),
            }
        return details_by_name

    def _requirements(
        self, signature: SignatureEntry, indexes: Sequence[int], position: int
    ) -> Details:
        """Size and kinds of memory of a tensor."""
        if not 0 <= position < len(indexes):
            _fail(1000, "Input index out of range")
        array = self._buffer(signature, indexes[position]).capsule
        return {"buffer_size": array.nbytes, "supported_types": [1]}

    def _buffer(self, signature: SignatureEntry, index: int) -> TensorBuffer:
        """A buffer of zeros for a tensor."""
        run = self._run_of(signature)
        run.allocate()
        return TensorBuffer(np.zeros(run.shape(index), run.subgraph.tensors[index].dtype))


def _load_options(kinds: HardwareAccelerator | None, options: Options | None) -> dict[str, Any]:
    """Options of `armpy.load`."""
    if options is None:
        return {} if kinds is None else Options(kinds).load_options()
    if kinds is not None:
        raise ValueError("Pass either options or hardware_accel, not both.")
    return options.load_options()


def _ordered_signatures(runs: ModelRuns) -> dict[str, SignatureEntry]:
    """Signatures in the file's order, their tensors in their subgraphs'."""
    if not runs.file.signatures:
        main = runs.main.subgraph
        names = (
            {main.tensors[index].name: index for index in indexes}
            for indexes in (main.inputs, main.outputs)
        )
        return {_UNNAMED: SignatureEntry(0, *names)}
    return {
        name: _ordered(signature, runs.file.subgraphs[signature.subgraph])
        for name, signature in runs.file.signatures.items()
    }


def _ordered(signature: SignatureEntry, subgraph: SubgraphEntry) -> SignatureEntry:
    """The signature with its tensors in the subgraph's order."""
    inputs, outputs = (
        dict(sorted(names.items(), key=lambda item: order.index(item[1])))
        for names, order in (
            (signature.inputs, subgraph.inputs),
            (signature.outputs, subgraph.outputs),
        )
    )
    return SignatureEntry(signature.subgraph, inputs, outputs)


def _copy(source: Any, target: Any) -> None:  # Any: arrays of every type
    """Copy an array's bytes to another of the same size."""
    if source.nbytes != target.nbytes:
        _fail(3, f"a buffer of {target.nbytes} bytes was expected; got {source.nbytes}")
    target.reshape(-1).view(np.uint8)[...] = source.reshape(-1).view(np.uint8)


def _fail(code: int, message: str) -> NoReturn:
    """Raise the error that LiteRT raises."""
    raise RuntimeError(f"CompiledModel error: code={code}, message={message}")
