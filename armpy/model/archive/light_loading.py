"""Loads compiled models: at once where nothing but running them is wanted, else as networks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from armpy.backend.programs import ProgramFit
from armpy.backend.workload import WorkloadInfo
from armpy.core.arguments import check_choice
from armpy.errors import ArmpyError, InvalidArgumentError, ParserError
from armpy.execution.arrays.tensor_spec import TensorSpec
from armpy.model import archive
from armpy.model.archive.compiled_file import CompiledFile, signatures_of
from armpy.model.light_network import (
    ArchivedGraph,
    ArchivedNetwork,
    ArchivedStep,
    ArchivedSteps,
    ArchivedTensor,
    shapes_of,
)
from armpy.model.load_request import LoadRequest, begins_prepared
from armpy.model.model import Model
from armpy.model.network_handle import NetworkHandle
from armpy.model.provenance import Derivation, Provenance
from armpy.plugins.program_loaders import announced_programs, has_plugins
from armpy.store.archive.checksum_cache import check_once
from armpy.store.archive.magic import KIND_MODEL, KIND_SHAPES
from armpy.store.archive.trust import CODE_CHOICES, TRUSTED, open_judged, read_trusted_keys
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES, DataType

# An import here slows every start of a compiled model.

if TYPE_CHECKING:
    from collections.abc import Callable

    from armpy.backend import IPrograms
    from armpy.compiler import Placement
    from armpy.execution.programs.program import StepProgram
    from armpy.execution.steps.control_flow import Shapes
    from armpy.model.load_options import LoadOptions
    from armpy.model.related_models import Signatures

ASKS_FOR_NETWORKS = (
    "ARMPY_BACKENDS",
    "ARMPY_DUMP_GRAPHS",
    "ARMPY_SYSTEM_TRACE",
    "ARMPY_TRUST_FILE",
    "ARMPY_VLOG",
)
"""Environment variables that ask for what only ordinary networks do."""


class NeedsCompilerError(Exception):
    """Reason to load a file as an ordinary network; never seen by callers."""


def load_prepared(request: LoadRequest) -> Model:
    """Load a compiled model; errors as for `armpy.load`."""
    file = open_prepared(request)
    try:
        return light_model(file)
    except NeedsCompilerError as reason:
        _say("%s is loaded as an ordinary network: %s", file.container.where, reason)
    return archive.reload.load_ordinary(file)


def load_light(request: LoadRequest) -> Model | None:
    """Load a compiled model that runs at once; None if more is asked for than that."""
    try:
        return light_model(open_prepared(request))
    except NeedsCompilerError:
        return None


def load_cached(
    request: LoadRequest,
    path: str,
    # Loads the model file, for whatever a light model does not do.
    load_original: Callable[[], Model],
    # Whether the model file is unchanged; the entry's own graph is loaded if it is not.
    is_original: Callable[[], bool],
) -> Model | None:
    """Load a model from the model cache; None if it cannot be used."""
    try:
        file = _open_entry(request, path, KIND_MODEL)

        def load_whole() -> Model:
            # Before and after: the original may be replaced while it is read.
            if is_original():
                model = load_original()
                if is_original():
                    archive.kept_models.keep_shapes(path, model, request)
                    return model
                model.close()
            # By now something else is where the original was.
            return archive.reload.load_ordinary(file)

        return light_model(file, load_whole, path)
    except (ArmpyError, NeedsCompilerError) as reason:
        _say("%s is not used: %s", path, reason)
        return None


def _open_entry(request: LoadRequest, path: str, kind: str) -> CompiledFile:
    """Open a file of the model cache, which has to be of the name that it was kept under."""
    file = open_prepared(LoadRequest(path, request.options), kind)
    if file.container.manifest.get("entry") != os.path.basename(path):
        raise NeedsCompilerError("it was kept for something else")
    return file


def _say(text: str, *about: object) -> None:
    """Log why more than programs are loaded, which may take its time."""
    import logging  # noqa: PLC0415

    logging.getLogger("armpy.execution").info(text, *about)


def open_prepared(
    request: LoadRequest,
    kind: str = KIND_MODEL,  # what the file has to be
) -> CompiledFile:
    """Open a compiled model, check it whole, and judge whether its code may be used."""
    asked = request.options
    if asked.runtime is None:
        code = TRUSTED if asked.code is None else asked.code
        check_choice(code, "code", CODE_CHOICES)
        keys = read_trusted_keys(asked.trusted_keys)
    else:
        options = asked.runtime_options()
        code, keys = options.code, read_trusted_keys(options.trusted_keys)
    # Judged before anything else is read: a file that may not be used is not trusted to be sound.
    container, verdict = open_judged(request.source, keys, code)
    verdict.check()
    actual = container.manifest.get("kind")
    if actual != kind:
        raise ParserError(
            "the compiled model holds no model",
            where=container.where,
            expected="what armpy compile or Model.save has written",
            actual=f"a file of kind {actual!r:.80}",
        )
    file = CompiledFile(container, verdict, request)
    # The sums of all sections, unless this very file was summed before; code is summed at each use.
    check_once(container, _code_sections(file))
    return file


def _code_sections(file: CompiledFile) -> list[str]:
    """Sections with code, which are checked whenever they are read."""
    sections = []
    for record in file.programs:
        parts, code = record.get("parts"), record.get("code")
        if not isinstance(parts, dict) or not all(isinstance(s, str) for s in parts.values()):
            file.container.refuse("the parts of a program cannot be read")
        if not isinstance(code, list) or not all(isinstance(n, str) and n in parts for n in code):
            file.container.refuse("the code of a program cannot be read")
        sections += [parts[name] for name in code]
    return sections


def light_model(
    file: CompiledFile,
    # Loads the model file that it was made from, where that is unchanged; the ordinary
    # network is made from the compiled model if left out.
    load_original: Callable[[], Model] | None = None,
    # Of the file in the model cache, as `cached_path` gave it: the programs of one that takes
    # several shapes lie beside it.
    path: str = "",
) -> Model:
    """A model that runs at once."""
    _check_request(file.request.options, file)
    manifest = file.container.manifest
    quick, interface = manifest.get("quick"), manifest.get("interface") if path else None
    if interface is None and not isinstance(quick, dict):
        raise NeedsCompilerError("more than programs are needed to run it")
    graph, first = _parts(file, quick if interface is None else interface, quick)
    shapes = None if interface is None else _KeptShapes(path, file.request, interface)

    def load_whole() -> NetworkHandle:
        if load_original is not None:
            return load_original().handle
        return archive.reload.load_ordinary(file).handle

    def placement(program: object) -> Placement:
        source = file if shapes is None else shapes.files.get(program, file)
        return archive.metadata.read_placement(source, is_cached=load_original is not None)

    find = None if shapes is None else shapes.find
    network = ArchivedNetwork(graph, first, _limit_bytes(file), placement, find)
    return model_of(file, NetworkHandle.start(network, load_whole), signatures_of(file))


class _KeptShapes:
    """Programs of a model in the cache, by the shapes that they are for."""

    def __init__(self, path: str, request: LoadRequest, interface: object) -> None:
        self._path = path  # of the model itself, as `cached_path` gave it
        self._request = request
        self._interface = interface  # record of its inputs and outputs
        # Weak: programs of shapes that are not used any more go.
        # Where a program was found.
        self.files: WeakKeyDictionary[object, CompiledFile] = WeakKeyDictionary()

    def find(self, shapes: Shapes) -> StepProgram | None:
        """Return the program for some shapes; None if nothing is kept, or it cannot be used."""
        place = archive.model_cache.shapes_path(self._path, shapes)
        if not begins_prepared(place):
            return None
        try:
            file = _open_entry(self._request, place, KIND_SHAPES)
            _, program = _parts(file, self._interface, file.container.manifest.get("quick"))
            if program is None or shapes_of(program) != shapes:
                raise NeedsCompilerError("it is for other shapes")
        except (ArmpyError, NeedsCompilerError) as reason:
            _say("%s is not used: %s", place, reason)
            return None
        self.files[program] = file
        return program


def model_of(
    file: CompiledFile,
    handle: NetworkHandle,
    signatures: Signatures[Model],
    derivation: Derivation | None = None,
) -> Model:
    """The model of a compiled model; `derivation` is of another signature than the first."""
    options = file.request.options
    return Model(
        handle,
        quantize_inputs=options.quantize_inputs,
        dequantize_outputs=options.dequantize_outputs,
        provenance=Provenance(
            derivation=derivation,
            signatures=signatures,
            read_metadata=lambda: archive.metadata.read_metadata(file.container),
        ),
    )


def _parts(
    file: CompiledFile, interface: object, quick: object
) -> tuple[ArchivedGraph, StepProgram | None]:
    """Graph of an archived network, and the programs that run it if recorded."""
    # Whatever is wrong with the record, the network in the same file may be sound, and says what is
    # wrong with it in words if it is not.
    try:
        graph = _graph_of(interface)
        return graph, None if quick is None else _program_of(file, quick, graph)
    # Plugin boundary: what reads a backend's programs may raise anything.
    except Exception as error:
        raise NeedsCompilerError(str(error) or repr(error)) from error


def _limit_bytes(file: CompiledFile) -> int:
    """The most that an execution may take."""
    limit = file.request.options.memory_limit_bytes
    return DEFAULT_MEMORY_LIMIT_BYTES if limit is None else limit


def _check_request(options: LoadOptions, file: CompiledFile) -> None:
    """Check that nothing is asked for that only ordinary networks do."""
    said = file.container.manifest.get("options")
    reasons = {
        options.why_network(said if isinstance(said, dict) else {}): True,
        "the environment asks for more": any(os.environ.get(name) for name in ASKS_FOR_NETWORKS),
        f"code is not used: {file.verdict.reason}": not file.verdict.uses_code,
        "plugins are asked": has_plugins(file.request.installed.entry_points),
    }
    for reason, holds in reasons.items():
        if reason and holds:
            raise NeedsCompilerError(reason)
    threads = options.num_threads
    if threads is not None and (type(threads) is not int or threads < 1):
        options.runtime_options()  # raises, or returns the options


def _graph_of(record: Any) -> ArchivedGraph:  # Any: a record of a file, of whatever form
    """Graph of an archived network; raises as `_program_of` does."""
    inputs, outputs = [
        tuple([TensorSpec(name, info_of(info)) for name, info in record[which]])
        for which in ("inputs", "outputs")
    ]
    if not all(isinstance(value.name, str) for value in (*inputs, *outputs)):
        raise ValueError("inputs or outputs cannot be")
    # A compiled file's are those that it is for.
    defaults = record["default_shapes"] if "default_shapes" in record else record["shapes"]
    shapes = tuple([None if shape is None else tuple(shape) for shape in defaults])
    if len(shapes) != len(inputs):
        raise ValueError("not every input has a default shape, or none")
    return ArchivedGraph(inputs, outputs, shapes)


def _program_of(
    file: CompiledFile,
    record: Any,  # Any: as above
    graph: ArchivedGraph,
) -> StepProgram:
    """Return the program of an archived network for the shapes of a record."""
    limit_bytes = _limit_bytes(file)
    if record["needed_bytes"] > limit_bytes:
        raise InvalidArgumentError("an execution needs more memory than is allowed")
    sources = [value.info for value in graph.inputs]
    shapes = record["shapes"]
    bound = [info.with_shape(tuple(shape)) for info, shape in zip(sources, shapes, strict=True)]
    results = [info_of(info) for info in record["results"]]
    tensors = [ArchivedTensor(info_of(info), int(at)) for info, at in record["tensors"]]
    arena_bytes = int(record["arena_bytes"])
    for tensor in tensors:
        info, at = tensor.info, tensor.offset_bytes
        # Programs write there without a check of their own: a wrong offset would be another's
        # memory.
        if not 0 <= at <= arena_bytes - info.size_bytes or at % info.data_type.dtype.itemsize:
            raise ValueError("a tensor does not lie in the memory")
    infos = [*bound, *results, *(tensor.info for tensor in tensors)]
    if not 0 <= arena_bytes <= limit_bytes or not all(info.is_fully_shaped for info in infos):
        raise ValueError("the memory cannot be made")
    if arena_bytes + sum([info.size_bytes for info in results]) > limit_bytes:
        raise ValueError("more memory is needed than the file says")
    if len(graph.outputs) != len(results):
        raise ValueError("outputs cannot be")
    steps = [_step(file, step, infos, len(bound)) for step in record["steps"]]
    return ArchivedSteps(bound, results, tensors, arena_bytes, steps).program()


def _step(
    file: CompiledFile, step: Mapping[str, Any], infos: Sequence[TensorInfo], num_sources: int
) -> ArchivedStep:
    """A layer with its workload."""
    inputs, outputs = tuple(step["inputs"]), tuple(step["outputs"])
    for number in (*inputs, *outputs):
        # Not isinstance: True is not a number of a tensor. Negative ones would count from the end.
        if type(number) is not int or not 0 <= number < len(infos):
            raise ValueError("a step reads or writes a tensor that does not exist")
    # Inputs are the caller's arrays.
    if any(number < num_sources for number in outputs):
        raise ValueError("a step writes an input")
    first = file.programs[step["program"]]
    backend_id, name = str(first["backend"]), str(step["layer"])
    threads = file.request.options.num_threads
    options = {} if threads is None else {"num_threads": threads}
    record, programs = _accepted(file, first, options)
    input_infos, output_infos = [infos[n] for n in inputs], [infos[n] for n in outputs]
    info = WorkloadInfo(name, tuple(input_infos), tuple(output_infos), (None,) * len(input_infos))
    if [list(i.known_shape) for i in output_infos] != record["shapes"]:
        raise ValueError("a step's outputs are not its program's")
    program = programs.load(file.saved_program(record))
    workload = programs.create_workload(program, info, options)
    if workload is None:
        raise ValueError(f"{backend_id} has to make the workload itself")
    return ArchivedStep(backend_id, name, workload, inputs, outputs)


def _accepted(
    file: CompiledFile, first: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[Mapping[str, Any], IPrograms]:
    """The first program of the same layers that can be used here, and what takes it."""
    backend_id, digest = str(first["backend"]), first["digest"]
    programs = announced_programs(backend_id, file.request.installed.entry_points)
    if programs is None:
        raise LookupError(f"{backend_id} announces nothing that takes its programs")
    # The file's targets in their order: the first that fits this machine.
    reasons = []
    for record in file.programs:
        if (record.get("backend"), record.get("digest")) == (backend_id, digest):
            check = programs.check(record["about"], options)
            if check.fit is ProgramFit.ACCEPTED:
                return record, programs
            reasons.append(check.reason)
    raise LookupError("; ".join(reasons))


def info_of(given: Sequence[Any]) -> TensorInfo:
    """A tensor's info, of what `armpy.model.save` writes."""
    shape, name, *rest = given
    quantization = None
    if rest:
        scales, zero_points, axis = rest
        quantization = Quantization(tuple(scales), tuple(zero_points), axis)
    if shape is not None and any(n is not None and type(n) is not int for n in shape):
        raise ValueError("a shape cannot be")
    return TensorInfo(None if shape is None else tuple(shape), DataType[name], quantization)
