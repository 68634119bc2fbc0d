"""Interpreter: LiteRT's way to run a model, over `armpy.load`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

from armpy.ops.operation import Array
from armpy_compat.litert import texts
from armpy_compat.litert.delegates import Delegate, load_delegate
from armpy_compat.litert.model_provider import ModelProvider
from armpy_compat.litert.model_runs import ModelRuns
from armpy_compat.litert.op_resolver import OpResolverType
from armpy_compat.litert.signature_runner import SignatureRunner
from armpy_compat.litert.tensor_details import Details, operator_details
from armpy_compat.threads import usable_threads

__all__ = [
    "Delegate",
    "Interpreter",
    "InterpreterWithCustomOps",
    "OpResolverType",
    "SignatureRunner",
    "load_delegate",
]

_UNLENT_REFERENCES = 2  # the run's attribute, and the argument of getrefcount


class Interpreter:
    """A model that is run tensor by tensor.

    Parameters
    ----------
    model_path : path, optional
    model_content : bytes, optional
        Either a path or the contents of a .tflite file.
    experimental_delegates : sequence of Delegate, optional
        Results of `load_delegate`; the last one's options count.
    num_threads : int, optional
        Number of threads for backends that have threads of their own; if left out, the backend
        decides.
    experimental_op_resolver_type : OpResolverType
        BUILTIN_REF runs the model on CpuRef.
    experimental_preserve_all_tensors : bool
        Whether `get_tensor` has every tensor that a run computes.

    Raises
    ------
    ValueError
        If the file cannot be read, or an argument cannot be used. Errors of operators are raised
        by `allocate_tensors`.

    Notes
    -----
    The other arguments are for LiteRT's own kernels, and have no effect.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Delegate] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
    ) -> None:
        if not isinstance(experimental_op_resolver_type, OpResolverType):
            kind = experimental_op_resolver_type
            # LiteRT's programs look for a ValueError.
            raise ValueError(f"Unrecognized passed in op resolver type: {kind}")  # noqa: TRY004
        if num_threads is not None:
            if not isinstance(num_threads, int):
                raise ValueError("type of num_threads should be int")
            if num_threads < 1:
                raise ValueError("num_threads should >= 1")
        if model_path and model_content:
            raise ValueError("Can't both provide `model_path` and `model_content`")
        if isinstance(model_path, bytes):
            model_path = os.fsdecode(model_path)
        if not isinstance(model_path or "", str | os.PathLike):
            raise TypeError(f"model_path: expected a path; got {model_path!r}")
        if not isinstance(model_content or b"", bytes | bytearray | memoryview):
            raise TypeError(f"model_content: expected bytes; got {type(model_content).__name__}")
        source = model_path or model_content
        if not source:
            raise ValueError("`model_path` or `model_content` must be specified.")
        threads = None if num_threads is None else usable_threads(num_threads)
        options: dict[str, Any] = {"num_threads": threads}  # Any: as `armpy.load` takes them
        if experimental_op_resolver_type is OpResolverType.BUILTIN_REF:
            options["backends"] = ["CpuRef"]
        self._delegates = [*(experimental_delegates or ())]
        for delegate in self._delegates:
            options.update(delegate.options.load_options())
        provider = ModelProvider(source, options)
        self._compresses_zero_points = bool(experimental_compress_quantization_zero_points)
        self._runs = ModelRuns(provider, bool(experimental_preserve_all_tensors))
        self._main = self._runs.main
        self._file = provider.file

    def allocate_tensors(self) -> None:
        """Load the model, prepare it for the inputs' shapes, and make arrays.

        Raises
        ------
        RuntimeError
            If armpy lacks an operator, the model does not take the shapes, or a caller holds a view
            of a tensor.
        """
        self._ensure_safe()
        self._main.allocate()

    def invoke(self) -> None:
        """Run the model.

        Raises
        ------
        RuntimeError
            If tensors are not allocated, a caller holds a view of one, or the run fails.
        """
        main = self._main
        if getrefcount(main.memory) > _UNLENT_REFERENCES:
            raise RuntimeError(texts.LENT_MEMORY)
        main.invoke()

    def set_tensor(self, tensor_index: int, value: object) -> None:
        """Copy an array to an input.

        Raises
        ------
        ValueError
            If there is no such tensor, the array does not fit, or tensors are not allocated.
        """
        self._main.set(tensor_index, value)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Any:  # Any: or a scalar
        """Copy a tensor: an input, output or constant, or any with all tensors preserved.

        Raises
        ------
        ValueError
            If there is no such tensor, or it has no elements now.
        """
        return self._runs[subgraph_index].get(tensor_index)

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """Return a function that returns a view of a tensor, in place.

        While a caller holds such a view, `invoke` and `allocate_tensors` raise RuntimeError.
        """
        return lambda: self._main.view(tensor_index)

    def resize_tensor_input(self, input_index: int, tensor_size: Any, strict: bool = False) -> None:
        """Choose the shape of an input; `allocate_tensors` has to follow.

        Parameters
        ----------
        strict : bool
            Whether only sizes that the file leaves open may change.

        Raises
        ------
        ValueError
            If the shape is not one-dimensional.
        RuntimeError
            If the tensor or the shape cannot be used, or a caller holds a view of a tensor.
        """
        self._ensure_safe()
        self._main.resize(input_index, tensor_size, strict)

    def get_input_details(self) -> list[Details]:
        """Describe the inputs, in the file's order."""
        return [self._get_tensor_details(i, 0) for i in self._main.subgraph.inputs]

    def get_output_details(self) -> list[Details]:
        """Describe the outputs, in the file's order."""
        return [self._get_tensor_details(i, 0) for i in self._main.subgraph.outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[Details]:
        """Describe all tensors of a subgraph whose element type NumPy has.

        Raises
        ------
        ValueError
            If there is no such subgraph.
        """
        count = self.num_subgraphs()
        if not 0 <= subgraph_index < count:
            raise ValueError(
                f"subgraph_index is out of range: {subgraph_index} for the model,"
                f" which has {count} subgraphs."
            )
        tensors = enumerate(self._file.subgraphs[subgraph_index].tensors)
        known = [index for index, tensor in tensors if tensor.dtype is not None]
        return [self._get_tensor_details(index, subgraph_index) for index in known]

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Names of each signature's inputs and outputs."""
        return {
            name: {"inputs": [*signature.inputs], "outputs": [*signature.outputs]}
            for name, signature in sorted(self._file.signatures.items())
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Make a signature callable.

        Parameters
        ----------
        signature_key : str, optional
            May be left out if the model has one signature.

        Raises
        ------
        ValueError
            If there is no such signature.
        """
        if signature_key is None:
            if len(self._file.signatures) != 1:
                raise ValueError(
                    "SignatureDef signature_key is None and model has"
                    f" {len(self._file.signatures)} Signatures. None is only allowed when the"
                    " model has 1 SignatureDef"
                )
            signature_key = next(iter(self._file.signatures))
        return SignatureRunner(self, signature_key)

    def reset_all_variables(self) -> None:
        """Give the state between calls its initial elements again."""
        self._runs.reset_variables()

    def num_subgraphs(self) -> int:
        """Number of subgraphs in the file."""
        return len(self._file.subgraphs)

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The argument of that name."""
        return self._compresses_zero_points

    # Programs that show or check models call these, although their names are private.

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> Details:
        """Describe a tensor; ValueError if there is none of that index."""
        return self._runs.details(tensor_index, int(subgraph_index))

    def _get_op_details(self, op_index: int) -> Details:
        """Describe an operator; ValueError if there is none of that index."""
        return operator_details(self._main.subgraph, int(op_index))

    def _get_ops_details(self) -> list[Details]:
        """Describe all operators of the main subgraph."""
        return [self._get_op_details(i) for i in range(len(self._main.subgraph.operators))]

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        """Tensor indexes of each signature's inputs and outputs."""
        return {
            name: {"inputs": dict(signature.inputs), "outputs": dict(signature.outputs)}
            for name, signature in sorted(self._file.signatures.items())
        }

    def _safe_to_run(self) -> bool:
        """Check that no caller holds a view of a tensor."""
        return getrefcount(self._main.memory) <= _UNLENT_REFERENCES

    def _ensure_safe(self) -> None:
        """Raise RuntimeError if a caller holds a view of a tensor."""
        if not self._safe_to_run():
            raise RuntimeError(texts.LENT_MEMORY)

    def _native_handle(self) -> int:
        """Raise NotImplementedError: there is no TFLite interpreter."""
        raise NotImplementedError("armpy has no native TFLite interpreter")


class InterpreterWithCustomOps(Interpreter):
    """Interpreter of models with custom operators, which plugins of armpy convert.

    Raises
    ------
    ValueError
        If registerers are given: they are functions of TFLite's C++ library.
    """

    def __init__(
        self, custom_op_registerers: Sequence[object] | None = None, **kwargs: Any
    ) -> None:
        for registerer in custom_op_registerers or ():
            raise ValueError(
                f"Looking up symbol '{registerer}' failed: armpy takes custom operators from"
                " plugins, see docs/how_to/write_a_plugin.md"
            )
        super().__init__(**kwargs)
