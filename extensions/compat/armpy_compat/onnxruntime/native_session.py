"""The session beneath `InferenceSession`: an armpy model with ONNX Runtime's calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np

import armpy
from armpy.backend import cancellable
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, ExecutionCancelledError
from armpy.execution import NetworkProperties, RuntimeOptions
from armpy_compat.onnxruntime.devices import OrtMemoryInfo
from armpy_compat.onnxruntime.element_types import as_bytes
from armpy_compat.onnxruntime.errors import (
    Fail,
    InvalidArgument,
    load_error,
    run_error,
    status_error,
)
from armpy_compat.onnxruntime.feeds import check_names, converted
from armpy_compat.onnxruntime.io_binding import SessionIOBinding
from armpy_compat.onnxruntime.loops import has_loops, without_time_limit
from armpy_compat.onnxruntime.node_arguments import (
    FileDescription,
    NodeArg,
    arguments_of,
    check_types,
    description_of,
    refined,
)
from armpy_compat.onnxruntime.ort_value import OrtValue, OrtValueVector
from armpy_compat.onnxruntime.profile_file import ProfileFile
from armpy_compat.onnxruntime.providers import (
    CPU,
    SUFFIX,
    backends_of,
    check_are_known,
    get_available_providers,
)
from armpy_compat.onnxruntime.run_options import RunOptions
from armpy_compat.onnxruntime.session_options import SessionOptions
from armpy_compat.onnxruntime.session_source import SessionSource, options_in_model
from armpy_compat.onnxruntime.structured_model import (
    StructuredModel,
    has_structures,
    labels_of,
    maps_of,
    with_inferred_types,
)
from armpy_compat.signatures import checked
from armpy_compat.threads import usable_threads
from armpy_onnx.messages.canonical import initial_names
from armpy_onnx.reading import is_described


@dataclass(frozen=True, slots=True)
class OrtEpAssignedNode:
    """A layer that a backend runs."""

    name: str
    domain: str
    op_type: str


@dataclass(frozen=True, slots=True)
class OrtEpAssignedSubgraph:
    """Layers that one backend runs after each other."""

    ep_name: str
    nodes: list[OrtEpAssignedNode]

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """Return the layers."""
        return self.nodes


_Feed = Mapping[str, object]
_Results = Mapping[str, Any]  # Any: arrays, lists of them or of maps
Callback = Callable[[Sequence[Any], object, str], object]


class NativeSession:
    """A session of ONNX Runtime's binding.

    Parameters
    ----------
    options : SessionOptions
    source : str or bytes
    is_path : bool
        Whether `source` is a path.
    reads_config : bool
        Whether the model's file may bring options.

    Raises
    ------
    NoSuchFile, InvalidProtobuf, InvalidArgument
        If the model's file cannot be read.
    """

    def __init__(
        self, options: SessionOptions, source: str | bytes, is_path: bool, reads_config: bool
    ) -> None:
        if not isinstance(options, SessionOptions):
            raise TypeError(f"sess_options: expected SessionOptions; got {options!r}")
        if source == "":
            raise TypeError("the path of the model is empty")
        start_s = time.perf_counter()
        path, data = (source, None) if isinstance(source, str) else (None, source)
        self._source = SessionSource(path, data)
        brought = options_in_model(self._source.model) if reads_config else None
        self.session_options = brought or options
        self._profile: ProfileFile | None = None
        if self.session_options.enable_profiling:
            self._profile = ProfileFile(self.session_options.profile_file_prefix, start_s)
            self._profile.add(f"model_loading_{'uri' if is_path else 'array'}", start_s)
        self._source.apply(self.session_options)
        model = self._source.model
        self.model_meta: FileDescription = description_of(model)
        initial = initial_names(model.graph)
        inputs = [value for value in model.graph.input if value.name not in initial]
        self.inputs_meta: list[NodeArg] = arguments_of(inputs)
        self._outputs_meta: list[NodeArg] | None = None
        # Of older forms, initializers stand among the inputs without being any.
        values = model.graph.input if model.ir_version >= _LEAST_FORM_WITH_DEFAULTS else ()
        defaults = [value for value in values if value.name in initial]
        self.overridable_initializers: list[NodeArg] = arguments_of(defaults)
        self._arguments = {argument.name: argument for argument in self.inputs_meta}
        self._defaults = {argument.name: argument for argument in self.overridable_initializers}
        self._providers: dict[str, dict[str, str]] = {}
        self._variants: dict[tuple[frozenset[str], frozenset[str], bool], armpy.Model] = {}

    def initialize_session(
        self,
        providers: Sequence[str],
        provider_options: Sequence[dict[str, str]],
        disabled_optimizers: Collection[str] = (),
    ) -> None:
        """Load the model on the providers' backends.

        Raises
        ------
        RuntimeError
            If a provider is not known.
        NotImplemented, InvalidGraph, EPFail, Fail
            If armpy cannot load the model.
        """
        start_s = time.perf_counter()
        options = self.session_options
        if not providers:
            providers = [name for name, _ in options.providers]
            provider_options = [settings for _, settings in options.providers]
        check_are_known(providers)
        available = get_available_providers()
        chosen = {
            name: settings
            for name, settings in zip(providers, provider_options, strict=True)
            if name in available
        }
        has_cpu = options.config_entries.get("session.disable_cpu_ep_fallback") != "1"
        if has_cpu or not chosen:
            chosen.setdefault(CPU, {})
        self._providers = chosen
        self._load = _loader(options, chosen, self._source.front_end, with_cpu=has_cpu)
        try:
            self._open()
        except ArmpyError as error:
            raise load_error(error, self._source.path, self._source.model) from error
        self._source.save(options)
        if self._profile is not None:
            self._profile.add("session_initialization", start_s)

    def _open(self) -> None:
        """Load the model, or prepare to load it for each call; errors as of `armpy.load`."""
        model = self._source.model
        self._labels: dict[str, list[int | str]] = {}
        self.model: armpy.Model | None = None
        if has_structures(model):
            self._run: Callable[..., _Results] = StructuredModel(self._load, model).run
            return
        self.model = self._load(self._source.loadable)
        self._labels = labels_of(model.graph.output, lambda: self.model.metadata)  # type: ignore[union-attr]
        check_types(model, self.model.outputs)
        self._run = self._runner(self.model)

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return [value.name for value in self._source.model.graph.output]

    @property
    def outputs_meta(self) -> list[NodeArg]:
        """Descriptions of the outputs.

        Notes
        -----
        Made when they are asked for: those that the file does not describe are inferred in a
        process of its own, which takes longer than loading a small model.
        """
        if self._outputs_meta is None:
            self._outputs_meta = self._described_outputs()
        return self._outputs_meta

    def _described_outputs(self) -> list[NodeArg]:
        model = self._source.model
        if self.model is None:
            return arguments_of(with_inferred_types(model))
        specs = self.model.outputs
        undescribed = {v.name for v in model.graph.output if not is_described(v.type)}
        has_open = any(s.name in undescribed and not s.info.is_fully_shaped for s in specs)
        values = with_inferred_types(model) if has_open else model.graph.output  # names of dims
        return refined(arguments_of(values), specs)

    def run(
        self, output_names: Sequence[str], feed: _Feed, run_options: RunOptions | None = None
    ) -> list[Any]:
        """Compute outputs.

        Raises
        ------
        InvalidArgument
            If an input or output does not fit the model.
        RuntimeError
            If something given cannot be a tensor.
        RuntimeException, EPFail, Fail
            If computing fails, or was terminated.
        """
        return [*map(as_bytes, self._outputs(output_names, feed, run_options))]

    def _outputs(
        self, output_names: Sequence[str], feed: _Feed, run_options: RunOptions | None
    ) -> list[Any]:
        """Outputs as armpy gives them; errors as of `run`."""
        if isinstance(output_names, str | Mapping):
            raise _wrong_names(output_names)
        try:
            if run_options is None:
                results = self._run(feed)
            else:
                results = _call(self._run, feed, output_names, run_options)
        except ArmpyError:
            # The usual types have failed: others are converted, or refused as there.
            results = self._results(output_names, feed, run_options)
        if self._labels:
            results = maps_of(results, self._labels)
        try:
            outputs = [results[name] for name in output_names]
        except KeyError as error:
            if not isinstance(error.args[0], str):
                raise _wrong_names(output_names) from None
            text = f"Invalid output name:{error.args[0]}"
            raise status_error(InvalidArgument, text) from None
        if len(outputs) > 1 and len({id(output) for output in outputs}) < len(outputs):
            # An output that is asked for twice is two arrays.
            return [
                np.array(output) if isinstance(output, np.ndarray) else output for output in outputs
            ]
        return outputs

    def _results(
        self, output_names: Sequence[str], feed: _Feed, run_options: RunOptions | None
    ) -> _Results:
        """Results of a call with inputs that have to be converted; errors as of `run`."""
        arrays = self._arrays(feed)
        try:
            model = self._fitting(arrays)
            run = self._run if model is self.model else self._runner(model)
            return _call(run, arrays, output_names, run_options)
        except ArmpyError as error:
            raise run_error(error) from error

    def _arrays(self, feed: _Feed) -> dict[str, object]:
        """Inputs as armpy takes them; errors as of `run`."""
        check_names(feed, {**self._arguments, **self._defaults})
        return {name: converted(self._argument(name), value) for name, value in feed.items()}

    def _argument(self, name: str) -> NodeArg:
        return self._arguments.get(name) or self._defaults[name]

    def _fitting(self, arrays: Mapping[str, object]) -> Any:  # Any: None with structures
        """The model, or a variant that takes these inputs, kept for further calls."""
        given = frozenset(self._defaults).intersection(arrays)
        raised = frozenset(name for name, array in arrays.items() if self._is_raised(name, array))
        is_tied = self.model is None or not self._have_two_sizes(arrays)
        if not given and not raised and is_tied:
            return self.model
        key = given, raised, is_tied
        if key not in self._variants:
            source = self._source.with_inputs(given, raised)
            options = {"tie_dimensions": is_tied}
            self._variants[key] = self._load(source, front_end="onnx", front_end_options=options)
        return self._variants[key]

    def _have_two_sizes(self, arrays: Mapping[str, object]) -> bool:
        """Whether open dimensions of one name have several sizes, which ONNX Runtime allows."""
        sizes: dict[str, int] = {}
        return any(
            isinstance(dim, str) and sizes.setdefault(dim, size) != size
            for name, array in arrays.items()
            for dim, size in zip(self._argument(name).shape or (), np.shape(array), strict=False)  # type: ignore[call-overload]
        )

    def _is_raised(self, name: str, value: object) -> bool:
        """Whether a value is an array with dimensions for an input that is declared as a scalar."""
        argument = self._argument(name)
        if self.model is None or argument.shape or not argument.type.startswith("tensor("):
            return False  # a model with structures is loaded for the shapes of each call
        return isinstance(value, np.ndarray) and value.ndim > 0

    def _runner(self, model: armpy.Model) -> Callable[..., _Results]:
        """`run` of a model, whose loops run until they end."""
        return without_time_limit(model.run) if has_loops(self._source.model) else model.run

    @checked
    def run_async(
        self,
        output_names: Sequence[str],
        feed: _Feed,
        callback: Callback,
        user_data: object,
        run_options: RunOptions | None = None,
    ) -> None:
        """Compute outputs on another thread, and call `callback` with them or an error there."""

        def work() -> None:
            try:
                outputs = self.run(output_names, feed, run_options)
            except Exception as error:  # noqa: BLE001 - the callback gets the text of every error
                callback([], user_data, str(error))
            else:
                callback(outputs, user_data, "")

        self._callers.submit(copy_context().run, work)

    @cached_property
    def _callers(self) -> ThreadPoolExecutor:
        """Threads of `run_async`."""
        return ThreadPoolExecutor(thread_name_prefix="run_async")

    def run_with_ort_values(
        self,
        feed: Mapping[str, OrtValue],
        output_names: Sequence[str],
        run_options: RunOptions | None = None,
    ) -> OrtValueVector:
        """Compute outputs as values; errors as of `run`."""
        arrays = {name: value.content() for name, value in feed.items()}
        results = self._outputs(output_names, arrays, run_options)
        return OrtValueVector(map(OrtValue, results))

    def run_with_iobinding(
        self, iobinding: SessionIOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Compute the outputs of a binding from its inputs.

        Raises
        ------
        ValueError
            If the binding is another session's.
        RuntimeError
            If something bound does not fit, or computing fails.
        """
        if iobinding.session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        if not iobinding.num_runs:  # since something was bound
            self._check_outputs(iobinding)
        names = [*iobinding.output_arrays]
        results = None
        if run_options is None and self.model is not None and not self._labels:
            results = self._written(self.model, names, iobinding)
        try:
            if results is None:
                results = self._outputs(names, iobinding.input_arrays, run_options)
            iobinding.set_results(results)
        except Exception as error:
            raise RuntimeError(f"Error in execution: {error}") from error

    def _check_outputs(self, iobinding: SessionIOBinding) -> None:
        """Check that outputs are bound to arrays that can hold them; raises RuntimeError."""
        if not iobinding.output_arrays:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        try:
            iobinding.check_targets()
        except InvalidArgument as error:
            raise RuntimeError(f"Error in execution: {error}") from error

    def _written(
        self, model: armpy.Model, names: Sequence[str], iobinding: SessionIOBinding
    ) -> list[Any] | None:
        """Outputs in the arrays that are bound; None where arrays do not fit as they are."""
        inputs, outputs = iobinding.input_arrays, iobinding.output_arrays
        targets = {name: array for name, array in outputs.items() if array is not None}
        try:
            if iobinding.num_runs and len(targets) == len(self.output_names):
                iobinding.execution = iobinding.execution or model.bind(inputs, targets)
                results = iobinding.execution()
            else:
                results = model.run(inputs, targets)
        except ArmpyError:
            return None  # `run` converts the inputs, or names what does not fit
        return [results[name] for name in names]

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[OrtValue],
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: object,
    ) -> None:
        """Compute outputs into a vector; errors as of `run`."""
        feed = dict(zip(feed_names, feeds, strict=True))
        fetches[:] = self.run_with_ort_values(feed, fetch_names, run_options)

    def get_providers(self) -> list[str]:
        """Return the names of the providers."""
        return [*self._providers]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the options of each provider."""
        return {name: dict(options) for name, options in self._providers.items()}

    @property
    def input_meminfos(self) -> list[OrtMemoryInfo]:
        """Memory in which each input lies."""
        return [OrtMemoryInfo("Cpu") for _ in self.inputs_meta]

    @property
    def output_meminfos(self) -> list[OrtMemoryInfo]:
        """Memory in which each output lies."""
        return [OrtMemoryInfo("Cpu") for _ in self.outputs_meta]

    @property
    def input_epdevices(self) -> list[None]:
        """Nothing for each input: see `get_ep_devices`."""
        return [None for _ in self.inputs_meta]

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Return which layers each backend runs.

        Raises
        ------
        Fail
            If the options do not ask for it.
        """
        if self.session_options.config_entries.get(_RECORDS_ASSIGNMENT) != "1":
            text = f"Session configuration entry '{_RECORDS_ASSIGNMENT}' must be set to \"1\""
            raise status_error(Fail, text)
        placement = None if self.model is None else self.model.placement
        if placement is None:
            return []
        return [
            OrtEpAssignedSubgraph(
                f"{backend}{SUFFIX}",
                [OrtEpAssignedNode(layer.layer, "", layer.operation) for layer in layers],
            )
            for backend, layers in groupby(placement.layers, lambda layer: layer.backend)
        ]

    @property
    def get_profiling_start_time_ns(self) -> int:
        """Start of profiling in nanoseconds of the system's clock; 0 if it has not."""
        return 0 if self._profile is None else self._profile.start_ns

    def end_profiling(self) -> str:
        """Write the profile and return its path; an empty text if there is none."""
        profile, self._profile = self._profile, None
        return "" if profile is None else profile.write(self.model)

    def get_tuning_results(self) -> list[dict[str, object]]:
        """Return nothing: see `armpy tune`."""
        return []

    def set_tuning_results(self, results: object, error_on_invalid: bool = False) -> None:
        """Accept results without effect: see `armpy tune`."""


_LEAST_FORM_WITH_DEFAULTS = 4

_RECORDS_ASSIGNMENT = "session.record_ep_graph_assignment_info"


def _wrong_names(names: object) -> TypeError:
    """The error for names of outputs that are not a list of texts."""
    text = f"output_names: expected a list of str or None; got {names!r}"
    return TypeError(f"run(): incompatible function arguments. {text}")


def _call(
    run: Callable[..., _Results],
    feed: _Feed,
    output_names: Sequence[str],
    run_options: RunOptions | None,
) -> _Results:
    """Results of a call that its options can end.

    Raises
    ------
    Fail
        If it is ended; else what `run` raises.
    """
    if run_options is None:
        return run(feed)
    if not isinstance(run_options, RunOptions):
        raise TypeError(f"run_options: expected RunOptions or None; got {run_options!r}")
    names = output_names if run_options.only_execute_path_to_fetches else None
    try:
        with cancellable(run_options.cancellation) as cancellation:
            cancellation.check()
            return run(feed, names)
    except ExecutionCancelledError as error:
        text = "Exiting due to terminate flag being set to true."
        raise status_error(Fail, text) from error


def _loader(
    options: SessionOptions,
    providers: Mapping[str, dict[str, str]],
    front_end: str | None,
    *,
    with_cpu: bool,
) -> partial[armpy.Model]:
    """`armpy.load` with what the options of a session ask for."""
    backends = backends_of([*providers], with_cpu=with_cpu)
    num_threads = usable_threads(options.intra_op_num_threads)
    properties = NetworkProperties(profiling=True) if options.enable_profiling else None
    own = {
        name.removesuffix(SUFFIX): settings
        for name, settings in providers.items()
        if settings and name != CPU
    }
    if not own:
        return partial(
            armpy.load,
            backends=backends,
            num_threads=num_threads,
            front_end=front_end,
            properties=properties,
            on_fallback=None if with_cpu else "error",
        )
    runtime = armpy.Runtime(
        RuntimeOptions(backends=backends, num_threads=num_threads, backend_options=own)
    )
    return partial(armpy.load, runtime=runtime, front_end=front_end, properties=properties)
