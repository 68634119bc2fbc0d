"""Loads a model as the command line says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from armpy.errors import InvalidArgumentError
from armpy.model.load_options import OPTIONS, LoadOptions

if TYPE_CHECKING:
    from armpy.execution import Runtime
    from armpy.model import Model
    from armpy.model.model_files import ModelOrigin
    from armpy.plugins import BackendRegistry

# A command line that cannot be followed is told without importing what runs networks.
# ruff: noqa: PLC0415


COMMAND_OPTIONS = {name: info for name, info in OPTIONS.items() if info.flags}
"""The options of loading that the command line has, by name."""


@dataclass(frozen=True, slots=True)
class CliLoadRequest:
    """Request to load a model: its path and the command's loading options.

    Parameters
    ----------
    model : str
        Path of the file.
    options : LoadOptions
        All but those of the front-end, whose types the front-end says.
    front_end_options : tuple of str
        Each ``NAME=VALUE``.
    backend_options : tuple of str
        Each ``ID.NAME=VALUE``.
    dynamic_backends_path : tuple of str
        Directories.
    """

    model: str
    options: LoadOptions = field(default_factory=LoadOptions)
    front_end_options: tuple[str, ...] = ()
    backend_options: tuple[str, ...] = ()
    dynamic_backends_path: tuple[str, ...] = ()

    def with_options(self, **options: Any) -> CliLoadRequest:  # Any: as `LoadOptions` takes them
        """The same with other options of loading."""
        return replace(self, options=replace(self.options, **options))


def load_model(
    request: CliLoadRequest,
    *,
    quantize_inputs: bool = False,
    profiling: bool = False,
    num_plans: int = 0,
) -> Model:
    """Load a model.

    Parameters
    ----------
    request : CliLoadRequest
    quantize_inputs, profiling : bool
    num_plans : int
        How many shapes it has to stay prepared for at least.

    Raises
    ------
    InvalidArgumentError
        If the model has no such signature, or a backend or front-end no such option.
    """
    import armpy
    from armpy.model.load_request import begins_prepared

    options = replace(request.options, quantize_inputs=quantize_inputs)
    is_prepared = begins_prepared(request.model)
    if is_prepared:
        _check_no_front_end(request)
        if not profiling and (quick := _load_quick(request, options)) is not None:
            return quick
    registry = registry_of(request)
    if not is_prepared:
        origin = find_origin(request, registry)
        _check_signature(origin, options.signature)
        options = replace(options, front_end_options=origin.options)
    runtime = make_runtime(request, registry, profiling=profiling, num_plans=num_plans)
    return armpy.load(request.model, **options.on(runtime).given())


def _check_no_front_end(request: CliLoadRequest) -> None:
    """Check that a prepared file is not to be parsed."""
    if request.options.front_end or request.front_end_options:
        raise InvalidArgumentError(
            "the file is prepared, and no front-end parses it",
            where="--front-end" if request.options.front_end else "--front-end-option",
            fix="Leave it out, or give the file that this one was made of",
        )


def _load_quick(request: CliLoadRequest, options: LoadOptions) -> Model | None:
    """A prepared model that runs at once; None if more is asked for than that."""
    if request.backend_options or request.dynamic_backends_path:
        return None
    from armpy.model.archive.quick_loading import NotQuickError, open_prepared, quick_model
    from armpy.model.load_request import LoadRequest

    try:
        return quick_model(open_prepared(LoadRequest(request.model, options)))
    except NotQuickError:
        return None


def load_anything(request: CliLoadRequest, registry: BackendRegistry) -> Model:
    """Load a network of one addition, where all is said but which model."""
    from armpy import DataType, Model, Network, TensorInfo, ops

    network = Network()
    value = network.input("x", TensorInfo((1,), DataType.FLOAT32))
    addition = ops.ElementwiseBinary(ops.BinaryOperation.ADD)
    network.output("y", network.add(addition, value, value))
    return Model(network, runtime=make_runtime(request, registry))


def registry_of(request: CliLoadRequest) -> BackendRegistry:
    """The backends that there are."""
    from armpy.cli.printer import stdout_kept
    from armpy.plugins import BackendRegistry, PluginOptions

    registry = BackendRegistry.discover(
        PluginOptions(dynamic_backends_path=request.dynamic_backends_path)
    )
    registry.plugins.around_calls = stdout_kept
    return registry


def make_runtime(
    request: CliLoadRequest,
    registry: BackendRegistry,
    *,
    profiling: bool = False,
    num_plans: int = 0,
) -> Runtime:
    """A runtime as the command line says."""
    from armpy.execution import Runtime, RuntimeOptions
    from armpy.execution.settings import DEFAULT_PLAN_CACHE_SIZE

    given = [split_option(text) for text in request.backend_options]
    return Runtime(
        RuntimeOptions(
            **request.options.of_runtime(),
            backend_options=parse_backend_options(registry, given),
            profiling=profiling,
            registry=registry,
            plan_cache_size=max(num_plans, DEFAULT_PLAN_CACHE_SIZE),
        )
    )


def find_origin(request: CliLoadRequest, registry: BackendRegistry) -> ModelOrigin:
    """The front-end that takes a model's file, with the options that it is given.

    Raises
    ------
    ParserError
        If the file cannot be read.
    InvalidArgumentError
        If there is no such front-end, or it has no such option, or the value is not allowed.
    """
    from armpy.model.model_files import ModelOrigin
    from armpy.plugins.hooks.model_file import open_model_file

    file = open_model_file(request.model)
    front_end = request.options.front_end
    origin = ModelOrigin.find(file, request.model, registry, front_end)
    if not request.front_end_options:
        return origin
    declared = {option.name: option for option in origin.front_end.front_end.options}
    given: dict[str, object] = {}
    for text in request.front_end_options:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InvalidArgumentError(
                "this is no option of a front-end",
                where="--front-end-option",
                expected="NAME=VALUE",
                actual=f"'{text}'",
            )
        where = f"--front-end-option {name}"
        if name in given:
            raise InvalidArgumentError("the option is given twice", where=where)
        given[name] = declared[name].parse(value, where) if name in declared else value
    return ModelOrigin.find(file, request.model, registry, front_end, given)


def _check_signature(origin: ModelOrigin, name: str | None) -> None:
    """Check that a model file has a signature, if one is asked for."""
    if name is None:
        return
    names = [signature.name for signature in origin.signatures()]
    if name not in names:
        raise InvalidArgumentError(
            "the model has no such signature",
            where="--signature",
            expected=", ".join(f"'{known}'" for known in names) or "none, as it has no signatures",
            actual=f"'{name}'",
        )


def split_option(text: str) -> tuple[str, str, str]:
    """The backend's id, the option's name and its value in ``ID.NAME=VALUE``.

    Raises
    ------
    InvalidArgumentError
        If the text is not of that form.
    """
    option, equals, value = text.partition("=")
    backend_id, _, name = option.rpartition(".")
    if not (backend_id and name and equals):
        raise InvalidArgumentError(
            "this is no option of a backend",
            where="--backend-option",
            expected="ID.NAME=VALUE",
            actual=f"'{text}'",
        )
    return backend_id, name, value


def parse_backend_options(
    registry: BackendRegistry, given: list[tuple[str, str, str]]
) -> dict[str, dict[str, object]]:
    """Values of the types that the backends declare.

    Parameters
    ----------
    given : list of (str, str, str)
        Backend id, name and text of each.

    Raises
    ------
    BackendUnavailableError
        If there is no such backend.
    InvalidArgumentError
        If it has no such option, naming the nearest one; if the value is not allowed, or
        given twice.
    """
    from armpy.backend.options import check_options
    from armpy.plugins.proxy.guard import BackendProxy

    values: dict[str, dict[str, object]] = {}
    for backend_id, name, text in given:
        where = f"--backend-option {backend_id}.{name}"
        declared = BackendProxy(registry.get(backend_id)).options
        option = next((option for option in declared if option.name == name), None)
        if option is None:
            check_options(declared, {name: text}, where)  # raises, and says what there is
        elif name in values.get(backend_id, {}):
            raise InvalidArgumentError("the option is given twice", where=where)
        else:
            values.setdefault(backend_id, {})[name] = option.parse(text, where)
    return values
