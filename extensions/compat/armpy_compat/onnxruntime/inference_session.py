"""`InferenceSession`: what programs call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from armpy_compat.onnxruntime.devices import OrtMemoryInfo
from armpy_compat.onnxruntime.errors import EPFail
from armpy_compat.onnxruntime.io_binding import IOBinding
from armpy_compat.onnxruntime.native_session import (
    Callback,
    NativeSession,
    OrtEpAssignedSubgraph,
)
from armpy_compat.onnxruntime.node_arguments import FileDescription, NodeArg
from armpy_compat.onnxruntime.ort_value import OrtValue, OrtValueVector
from armpy_compat.onnxruntime.providers import (
    CPU,
    Provider,
    check_and_normalize_provider_args,
    get_available_providers,
)
from armpy_compat.onnxruntime.run_options import RunOptions
from armpy_compat.onnxruntime.session_options import SessionOptions
from armpy_compat.signatures import checked


class Session:
    """Calls of a session; `InferenceSession` opens one."""

    _sess: NativeSession

    def __init__(self, enable_fallback: bool = True) -> None:
        self._enable_fallback = enable_fallback
        self._fallback_providers = [CPU]

    def get_session_options(self) -> SessionOptions:
        """Return the options of the session."""
        return self._sess.session_options

    def get_inputs(self) -> list[NodeArg]:
        """Return descriptions of the inputs."""
        return self._sess.inputs_meta

    def get_outputs(self) -> list[NodeArg]:
        """Return descriptions of the outputs."""
        return self._sess.outputs_meta

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return descriptions of the inputs that have a default."""
        return self._sess.overridable_initializers

    def get_modelmeta(self) -> FileDescription:
        """Return what the model's file says about the model."""
        return self._sess.model_meta

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return where each input lies."""
        return self._sess.input_meminfos

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return where each output lies."""
        return self._sess.output_meminfos

    def get_input_epdevices(self) -> list[None]:
        """Return nothing for each input: see `get_ep_devices`."""
        return self._sess.input_epdevices

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Return which layers each backend runs.

        Raises
        ------
        Fail
            If the options do not ask for it (``session.record_ep_graph_assignment_info``).
        """
        return self._sess.get_provider_graph_assignment_info()

    def get_providers(self) -> list[str]:
        """Return the names of the providers."""
        return self._sess.get_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the options of each provider."""
        return self._sess.get_provider_options()

    def disable_fallback(self) -> None:
        """Raise the error of a provider that fails while it runs."""
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        """Run again on `CPUExecutionProvider` when a provider fails while it runs."""
        self._enable_fallback = True

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, object],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Compute outputs.

        Parameters
        ----------
        output_names : sequence of str or None
            None or an empty sequence for all outputs.
        input_feed : mapping of str to array_like
        run_options : RunOptions, optional

        Returns
        -------
        list of (ndarray, list or dict)

        Raises
        ------
        ValueError
            If an input is missing.
        InvalidArgument
            If a name, a type or a shape does not fit the model.
        RuntimeException, EPFail, Fail
            If computing fails, or was terminated.
        """
        self._validate_input(input_feed)
        names = output_names or self._output_names
        try:
            return self._sess.run(names, input_feed, run_options)
        except EPFail as error:
            self._fall_back(error)
        return self._sess.run(names, input_feed, run_options)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, object],
        callback: Callback,
        user_data: object,
        run_options: RunOptions | None = None,
    ) -> None:
        """Compute outputs on another thread.

        Parameters
        ----------
        callback : callable
            Called with the outputs, `user_data`, and the text of an error or an empty text.
        """
        self._validate_input(input_feed)
        names = output_names or self._output_names
        self._sess.run_async(names, input_feed, callback, user_data, run_options)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Compute outputs as values from values; raises as `run`."""
        self._validate_input(input_dict_ort_values)
        names = output_names or self._output_names
        try:
            return [*self._sess.run_with_ort_values(input_dict_ort_values, names, run_options)]
        except EPFail as error:
            self._fall_back(error)
        return [*self._sess.run_with_ort_values(input_dict_ort_values, names, run_options)]

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Compute the outputs of a binding from its inputs.

        Raises
        ------
        RuntimeError
            If something bound does not fit, or computing fails.
        """
        self._sess.run_with_iobinding(iobinding._iobinding, run_options)

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[OrtValue],
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: object,
    ) -> None:
        """Compute outputs into a vector; raises as `run`."""
        self._sess.run_with_ortvaluevector(
            run_options, feed_names, feeds, fetch_names, fetches, fetch_devices
        )

    def io_binding(self) -> IOBinding:
        """Make a binding of inputs and outputs."""
        return IOBinding(self)

    def end_profiling(self) -> str:
        """Write the profile and return the path of its file."""
        return self._sess.end_profiling()

    def get_profiling_start_time_ns(self) -> int:
        """Return when profiling began, in nanoseconds of the system's clock."""
        return self._sess.get_profiling_start_time_ns

    @checked
    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Accept options without effect."""

    def get_tuning_results(self) -> list[dict[str, object]]:
        """Return nothing: see `armpy tune`."""
        return self._sess.get_tuning_results()

    def set_tuning_results(self, results: object, *, error_on_invalid: bool = False) -> None:
        """Accept results without effect: see `armpy tune`."""
        self._sess.set_tuning_results(results, error_on_invalid)

    def _validate_input(self, feed: Mapping[str, object]) -> None:
        """Check that every input is given that has to be."""
        if feed.keys() >= self._required:
            return
        missing = [
            argument.name
            for argument in self.get_inputs()
            if argument.name in self._required and argument.name not in feed
        ]
        raise ValueError(
            f"Required inputs ({missing}) are missing from input feed ({[*feed.keys()]})."
        )

    def _fall_back(self, error: Exception) -> None:
        """Open the session on the processor, once; raise the error if that is disabled."""
        if not self._enable_fallback:
            raise error
        print(f"EP Error: {error} using {self.get_providers()}")
        print(f"Falling back to {self._fallback_providers} and retrying.")
        self.set_providers(self._fallback_providers)
        self.disable_fallback()

    @property
    def _outputs_meta(self) -> list[NodeArg]:
        return self._sess.outputs_meta

    def set_providers(
        self,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,  # Any: as programs give them
    ) -> None:
        """Open the session again on other providers."""
        raise NotImplementedError

    def _open(self, native: NativeSession) -> None:
        """Take a session beneath this one."""
        self._sess = native
        # Programs read these beside the methods that return them.
        self._inputs_meta = native.inputs_meta
        self._model_meta, self._providers = native.model_meta, native.get_providers()
        self._output_names = native.output_names
        self._required = frozenset(
            argument.name
            for argument in native.inputs_meta
            if not argument.type.startswith("optional")
        )


class InferenceSession(Session):
    """A model that can be run.

    Parameters
    ----------
    path_or_bytes : str, path or bytes
    sess_options : SessionOptions, optional
    providers : sequence of (str or tuple of str and dict), optional
        Names, or names with options; all installed backends if left out.
    provider_options : sequence of dict, optional
        Options of each provider, where `providers` has names alone.
    **kwargs : object
        ``enable_fallback`` and ``read_config_from_model``, 0 or 1.

    Raises
    ------
    TypeError
        If the model is neither a path nor bytes.
    NoSuchFile, InvalidProtobuf, InvalidArgument, InvalidGraph, NotImplemented, EPFail, Fail
        If the model cannot be loaded.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,  # Any: as programs give them
        **kwargs: Any,  # Any: as ONNX Runtime takes them
    ) -> None:
        super().__init__(int(kwargs.get("enable_fallback", 1)) == 1)
        if not isinstance(path_or_bytes, str | bytes | os.PathLike):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._model: str | bytes = (
            path_or_bytes if isinstance(path_or_bytes, bytes) else os.fspath(path_or_bytes)
        )
        self._model_path = self._model if isinstance(self._model, str) else None
        self._options = sess_options
        self._reads_config = (
            int(kwargs["read_config_from_model"]) == 1
            if "read_config_from_model" in kwargs
            else os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1"
        )
        try:
            self._create(providers, provider_options)
        except (ValueError, RuntimeError) as error:
            if not self._enable_fallback:
                raise
            print("*************** EP Error ***************")
            print(f"EP Error {error} when using {providers}")
            print(f"Falling back to {self._fallback_providers} and retrying.")
            print("****************************************")
            self._create(self._fallback_providers, None)
            self.disable_fallback()

    def set_providers(
        self,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,  # Any: as programs give them
    ) -> None:
        """Open the session again on other providers.

        Raises
        ------
        RuntimeError
            If a provider is not known; the session stays as it is.
        """
        self._create(providers, provider_options)

    def _create(
        self,
        providers: Sequence[Provider] | None,
        provider_options: Sequence[dict[Any, Any]] | None,
    ) -> None:
        """Open the session beneath this one."""
        if providers is not None and not isinstance(providers, Iterable):
            raise TypeError(f"providers: expected a sequence or None; got {providers!r}")
        names, options = check_and_normalize_provider_args(
            providers, provider_options, get_available_providers()
        )
        session_options = SessionOptions() if self._options is None else self._options
        if names and getattr(self._options, "providers", None):
            warnings.warn(
                "Specified 'providers'/'provider_options' when creating InferenceSession but"
                " SessionOptions has already been configured with providers. InferenceSession will"
                " only use the providers passed to InferenceSession().",
                stacklevel=3,
            )
        is_path = isinstance(self._model, str)
        native = NativeSession(session_options, self._model, is_path, self._reads_config)
        native.initialize_session(names, options)
        self._open(native)
