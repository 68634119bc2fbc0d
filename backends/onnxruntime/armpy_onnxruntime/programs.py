"""Compiled subgraphs: sessions, and the ONNX models in files that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from armpy.backend import (
    IEngineProgram,
    IEnginePrograms,
    OptionValue,
    OptionValues,
    ProgramCheck,
)
from armpy.errors import BackendError, BackendUnavailableError, UnimplementedError
from armpy.ops.operation import Array
from armpy.types import BackendId
from armpy_onnxruntime.engine import PROVIDERS, Provider, preload_nvidia, require

_FORMAT = 3


class OnnxProgram(IEngineProgram):
    """An ONNX Runtime session; several executions run at the same time."""

    def __init__(
        self,
        model: bytes,
        session: Any,  # Any: the engine's own
        runtime: Any,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,  # of each call
    ) -> None:
        self._model = model
        self._session = session
        self._value = runtime.OrtValue.ortvalue_from_numpy  # on the CPU it shares the memory
        self._inputs = [tensor.name for tensor in session.get_inputs()]
        self._outputs = [tensor.name for tensor in session.get_outputs()]
        self._around = around

    @property
    def model(self) -> bytes:
        """The model that it was compiled from."""
        return self._model

    def execute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Bind the arrays, so that the session reads and writes them in place, and run it."""
        binding = self._session.io_binding()
        for name, array in zip(self._inputs, inputs, strict=True):
            binding.bind_ortvalue_input(name, self._value(array))
        for name, array in zip(self._outputs, outputs, strict=True):
            binding.bind_ortvalue_output(name, self._value(array))
        try:
            with self._around():
                self._session.run_with_iobinding(binding)
        except Exception as error:  # its exceptions have no base class of their own
            raise BackendError(" ".join(str(error).split()), where="ONNX Runtime") from error


class OnnxPrograms(IEnginePrograms):
    """Makes sessions of ONNX models, without the package ``onnx``.

    Parameters
    ----------
    provider : Provider
        The one that computes; nothing is left to ONNX Runtime's own kernels.
    """

    def __init__(self, provider: Provider = PROVIDERS[0]) -> None:
        self._provider = provider

    @property
    def backend_id(self) -> BackendId:
        """The provider's."""
        return self._provider.backend_id

    def describe(self, options: Mapping[str, object]) -> dict[str, OptionValue]:
        """Threads."""
        return {"format": _FORMAT, "num_threads": int(str(options.get("num_threads", 0)))}

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Compare the dependencies of a program, if ONNX Runtime has the provider."""
        self._require_provider()
        return super().check(about, options)

    def _require_provider(self) -> None:
        """Raise BackendUnavailableError if the installed ONNX Runtime lacks the provider."""
        provider = self._provider
        runtime: Any = require("onnxruntime", self.backend_id)  # Any: it has no types
        if provider.name not in runtime.get_available_providers():
            raise BackendUnavailableError(
                f"this ONNX Runtime has no {provider.name}", where=self.backend_id
            )

    def choose_provider(
        self,
        options: Any,  # Any: SessionOptions, which has no types
        about: Mapping[str, OptionValue],
    ) -> list[str] | None:
        """Have a session compute on the provider; its names for the session, where it has them.

        Raises
        ------
        BackendUnavailableError
            If the installed ONNX Runtime does not have it.
        """
        self._require_provider()
        provider = self._provider
        if provider.is_nvidia:
            preload_nvidia()
        if provider.name != PROVIDERS[0].name:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        return [provider.name]

    def around(self) -> AbstractContextManager[None]:
        """Enter this where the provider's code runs in the caller's thread."""
        return nullcontext()

    def compile(self, model: bytes, about: Mapping[str, OptionValue]) -> OnnxProgram:
        """Make the session, which packs weights and fuses layers."""
        runtime: Any = require("onnxruntime", self.backend_id)  # Any: it has no types
        options = runtime.SessionOptions()
        options.intra_op_num_threads = int(about["num_threads"])
        options.log_severity_level = 4  # errors are raised
        names = self.choose_provider(options, about)
        try:
            # Its own fallback to the CPU prints to stdout.
            with self.around():
                session = runtime.InferenceSession(
                    model, sess_options=options, providers=names, enable_fallback=0
                )
        except Exception as error:  # its exceptions have no base class of their own
            text = str(error).strip().partition("\n")[0]
            refusal = f"ONNX Runtime refuses it: {text}"
            raise UnimplementedError(refusal, where=self.backend_id) from error
        return OnnxProgram(model, session, runtime, self.around)
