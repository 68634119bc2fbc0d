"""Loads prepared files: at once where nothing but running them is wanted, else as networks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from armpy.errors import ArmpyError, InvalidArgumentError, ParserError
from armpy.execution.calls.quick_network import QuickGraph, QuickNetwork, QuickValue
from armpy.execution.programs.program import StepProgram
from armpy.execution.programs.quick_plan import (
    ArchivedProgram,
    QuickMemory,
    QuickStep,
    QuickTensor,
)
from armpy.model.archive.prepared_file import WRONG_FORM, PreparedFile, signatures_of
from armpy.model.model import Model
from armpy.plugins.program_loaders import announced_programs, has_plugins
from armpy.store.archive.checksum_cache import check_once
from armpy.store.archive.signing import trusted_keys
from armpy.store.archive.trust import TRUSTED, check_code_choice, open_judged
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES, DataType

# What is imported here is paid for at every start of a prepared model.
# ruff: noqa: PLC0415

if TYPE_CHECKING:
    from collections.abc import Callable

    from armpy.backend import IPrograms
    from armpy.compiler import Placement
    from armpy.execution.loaded_network import LoadedNetwork
    from armpy.model.load_request import LoadRequest
    from armpy.model.signatures import Signatures

KIND_MODEL = "model"
"""What a file says that it is."""

_ORDINARY = ("ARMPY_BACKENDS", "ARMPY_DUMP_GRAPHS", "ARMPY_TRUST_FILE", "ARMPY_VLOG")
"""Environment variables that ask for what only ordinary networks do."""


class NotQuickError(Exception):
    """Reason to load a file as an ordinary network; never seen by callers."""


def load_prepared(request: LoadRequest) -> Model:
    """Load a prepared file; errors as for `armpy.load`."""
    file = open_prepared(request)
    try:
        return quick_model(file)
    except NotQuickError as reason:
        import logging  # what is not quick may take its time

        text = "%s is loaded as an ordinary network: %s"
        logging.getLogger("armpy.execution").info(text, file.container.where, reason)
    from armpy.model.archive.reload import load_ordinary

    return load_ordinary(file)


def open_prepared(request: LoadRequest) -> PreparedFile:
    """Open a prepared file, check it whole, and judge whether its code may be used.

    Raises
    ------
    ParserError
        If it is damaged, or may not be loaded.
    """
    if request.runtime is None:
        code = TRUSTED if request.code is None else request.code
        check_code_choice(code)
        keys = trusted_keys(request.trusted_keys or ())
    else:
        options = request.options()
        code, keys = options.code, trusted_keys(options.trusted_keys)
    container, verdict = open_judged(request.source, keys, code)
    verdict.check()
    kind = container.manifest.get("kind")
    if kind != KIND_MODEL:
        raise ParserError(
            "the prepared file holds no model",
            where=container.where,
            expected="what armpy compile or Model.save has written",
            actual=f"a file of kind {kind!r:.80}",
        )
    file = PreparedFile(container, verdict, request)
    check_once(container, _code_sections(file))
    return file


def _code_sections(file: PreparedFile) -> list[str]:
    """Sections with code, which are checked whenever they are read.

    Raises
    ------
    ParserError
        If programs do not say in which sections they are.
    """
    found = []
    for record in file.programs:
        parts, code = record.get("parts"), record.get("code")
        if not isinstance(parts, dict) or not all(isinstance(s, str) for s in parts.values()):
            file.container.refuse("the parts of a program cannot be read")
        if not isinstance(code, list) or not all(isinstance(n, str) and n in parts for n in code):
            file.container.refuse("the code of a program cannot be read")
        found += [parts[name] for name in code]
    return found


def quick_model(file: PreparedFile, load_original: Callable[[], Model] | None = None) -> Model:
    """A model that runs at once.

    Parameters
    ----------
    file : PreparedFile
    load_original : callable, optional
        Loads the model file that it was made from, where that is still what it was; the ordinary
        network is made from the prepared file if left out.

    Raises
    ------
    NotQuickError
        If it takes an ordinary network.
    """
    request, manifest = file.request, file.container.manifest
    record = manifest.get("quick")
    _check_request(request, file)
    if not isinstance(record, dict):
        raise NotQuickError("more than programs are needed to run it")
    limit = request.memory_limit_bytes
    if limit is None:
        limit = DEFAULT_MEMORY_LIMIT_BYTES
    try:
        graph, program = _quick_parts(file, record, limit)
    except (ArmpyError, *WRONG_FORM) as error:
        raise NotQuickError(str(error) or repr(error)) from error

    def make(load_whole: Callable[[], LoadedNetwork]) -> QuickNetwork:
        return QuickNetwork(graph, program, load_whole, limit)

    def ordinary() -> Model:
        if load_original is not None:
            return load_original()
        from armpy.model.archive.reload import load_ordinary

        return load_ordinary(file)

    def placement() -> Placement:
        from armpy.model.archive.metadata import read_placement

        return read_placement(file, is_cached=load_original is not None)

    def open_one(name: str, signatures: Signatures, first: Model) -> Model:
        from armpy.model.archive.reload import open_signature

        return open_signature(file, name, signatures, first)

    return Model.quick(
        make,
        ordinary,
        quantize_inputs=request.quantize_inputs,
        dequantize_outputs=request.dequantize_outputs,
        signatures=signatures_of(file, open_one),
        read_metadata=lambda: _metadata(file),
        read_placement=placement,
    )


def _metadata(file: PreparedFile) -> Any:  # Any: a class that few import
    """What the original file said of itself."""
    from armpy.model.archive.metadata import read_metadata

    return read_metadata(file.container)


def _check_request(request: LoadRequest, file: PreparedFile) -> None:
    """Check that nothing is asked for that only ordinary networks do."""
    options = file.container.manifest.get("options")
    saved = options if isinstance(options, dict) else {}
    wanted = None if request.backends is None else [*request.backends]
    reasons = {
        "a runtime is given": request.runtime is not None,
        "properties are given": request.properties is not None,
        "a signature is asked for": request.signature is not None,
        "front-ends do not read it": bool(request.front_end or request.front_end_options),
        "fallback is watched": request.on_fallback not in (None, "allow"),
        "other backends are wanted": wanted not in (None, saved.get("backends")),
        "another preference is wanted": request.preference not in (None, saved.get("preference")),
        "the environment asks for more": any(os.environ.get(name) for name in _ORDINARY),
        f"code is not used: {file.verdict.reason}": not file.verdict.uses_code,
        "plugins are asked": has_plugins(),
    }
    for reason, holds in reasons.items():
        if holds:
            raise NotQuickError(reason)
    if request.num_threads is not None and (
        type(request.num_threads) is not int or request.num_threads < 1
    ):
        request.options()  # raises, or says what is meant


def _quick_parts(
    file: PreparedFile, record: Mapping[str, Any], limit_bytes: int
) -> tuple[QuickGraph, StepProgram[QuickMemory]]:
    """What a quick network is made of.

    Raises
    ------
    ArmpyError, ValueError, TypeError, LookupError
        If the record is of another form, or a program cannot be used here.
    """
    if record["needed_bytes"] > limit_bytes:
        raise InvalidArgumentError("an execution needs more memory than is allowed")
    sources = [info_of(info) for _, info in record["inputs"]]
    shapes = tuple([tuple(shape) for shape in record["shapes"]])
    bound = [info.with_shape(shape) for info, shape in zip(sources, shapes, strict=True)]
    results = [info_of(info) for info in record["results"]]
    tensors = [QuickTensor(info_of(info), int(at)) for info, at in record["tensors"]]
    arena_bytes = int(record["arena_bytes"])
    for info, at in tensors:
        if not 0 <= at <= arena_bytes - info.size_bytes or at % info.data_type.dtype.itemsize:
            raise ValueError("a tensor does not lie in the memory")
    infos = [*bound, *results, *(tensor.info for tensor in tensors)]
    if not 0 <= arena_bytes <= limit_bytes or not all(info.is_fully_shaped for info in infos):
        raise ValueError("the memory cannot be made")
    if arena_bytes + sum([info.size_bytes for info in results]) > limit_bytes:
        raise ValueError("more memory is needed than the file says")
    steps = [_step(file, step, infos, len(bound)) for step in record["steps"]]
    named = zip(record["inputs"], sources, strict=True)
    graph = QuickGraph(
        tuple([QuickValue(name, info) for (name, _), info in named]),
        tuple([QuickValue(name, info_of(info)) for name, info in record["outputs"]]),
        shapes,
        tuple(results),
    )
    names = [value.name for value in (*graph.inputs, *graph.outputs)]
    if not all(isinstance(name, str) for name in names) or len(graph.outputs) != len(results):
        raise ValueError("inputs or outputs cannot be")
    return graph, StepProgram(ArchivedProgram(bound, results, tensors, arena_bytes, steps))


def _step(
    file: PreparedFile, step: Mapping[str, Any], infos: Sequence[TensorInfo], num_sources: int
) -> QuickStep:
    """A layer with its workload."""
    from armpy.backend.workload import WorkloadInfo

    inputs, outputs = tuple(step["inputs"]), tuple(step["outputs"])
    for number in (*inputs, *outputs):
        if type(number) is not int or not 0 <= number < len(infos):
            raise ValueError("a step reads or writes what is not there")
    if any(number < num_sources for number in outputs):
        raise ValueError("a step writes an input")
    first = file.programs[step["program"]]
    backend_id, name = str(first["backend"]), str(step["layer"])
    options = {} if file.request.num_threads is None else {"num_threads": file.request.num_threads}
    record, programs = _accepted(file, first, options)
    given, made = [infos[n] for n in inputs], [infos[n] for n in outputs]
    info = WorkloadInfo(name, tuple(given), tuple(made), (None,) * len(given))
    if [list(i.known_shape) for i in made] != record["shapes"]:
        raise ValueError("a step's outputs are not its program's")
    program = programs.load(file.saved_program(record))
    workload = programs.create_workload(program, info, options)
    if workload is None:
        raise ValueError(f"{backend_id} has to make the workload itself")
    return QuickStep(backend_id, name, workload, inputs, outputs)


def _accepted(
    file: PreparedFile, first: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[Mapping[str, Any], IPrograms]:
    """The first program of the same layers that can be used here, and what takes it."""
    from armpy.backend.programs import ProgramFit

    backend_id, digest = str(first["backend"]), first["digest"]
    programs = announced_programs(backend_id)
    if programs is None:
        raise LookupError(f"{backend_id} announces nothing that takes its programs")
    reasons = []
    for record in file.programs:
        if (record.get("backend"), record.get("digest")) == (backend_id, digest):
            check = programs.check(record["about"], options)
            if check.fit is ProgramFit.ACCEPTED:
                return record, programs
            reasons.append(check.reason)
    raise LookupError("; ".join(reasons))


def info_of(given: Sequence[Any]) -> TensorInfo:
    """A tensor's info, of what `armpy.model.archive.save` writes."""
    shape, name, *rest = given
    quantization = None
    if rest:
        scales, zero_points, axis = rest
        quantization = Quantization(tuple(scales), tuple(zero_points), axis)
    if shape is not None and any(n is not None and type(n) is not int for n in shape):
        raise ValueError("a shape cannot be")
    return TensorInfo(None if shape is None else tuple(shape), DataType[name], quantization)
