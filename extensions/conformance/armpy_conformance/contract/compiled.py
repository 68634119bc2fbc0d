"""Rules about compiled subgraphs, which the core keeps in files for a backend."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from armpy import CompilationCaching
from armpy.backend import (
    CacheUse,
    IBackendInternal,
    IPrograms,
    OptionValues,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
)
from armpy.backend.caches import KEEPS_NOTHING
from armpy.compiler import specialize
from armpy.errors import BackendCapabilityError
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import LoadOptions, LoadRequest, Model
from armpy.model.archive.light_loading import load_prepared
from armpy.plugins import BackendRegistry
from armpy.plugins.proxy.guard import keeps_programs
from armpy.plugins.proxy.guarded_call import ask_method
from armpy.store.archive.trust import TRUSTED
from armpy_conformance.backend_under_test import BackendUnderTest, specialized
from armpy_conformance.cases import sample_cases
from armpy_conformance.cases.every_bit import ALL_BITS
from armpy_conformance.cases.patterns import kit_patterns
from armpy_conformance.contract.attribute_cases import attribute_cases, side_by_side
from armpy_conformance.contract.case import NotApplicableError, NothingToKeepError, check
from armpy_conformance.contract.growth import Repetition, check_growth
from armpy_conformance.contract.networks import Bench, sample_bench, samples, with_constants
from armpy_conformance.contract.networks import bench as made_bench


def _temporary_folder() -> TemporaryDirectory[str]:
    """A folder for compiled models.

    Windows removes no file of a model that is still loaded, as where a rule is broken.
    """
    return TemporaryDirectory(prefix="armpy-conformance-", ignore_cleanup_errors=True)


def kept_parts_compute_the_same(subject: BackendUnderTest) -> None:
    """Compiled parts that the core keeps give the right answers in the next process."""
    if not keeps_programs(subject.backend):
        raise NothingToKeepError("the core keeps none of its programs")
    pairs = with_constants(subject)  # whose files must not be taken for each other's
    cases = dict.fromkeys((*samples(subject), *(case for pair in pairs for case in pair)))
    benches = [sample_bench(subject, case) for case in cases]
    with _temporary_folder() as folder:
        caching = CompilationCaching(folder)
        for bench in benches:
            _uses(subject, caching, bench, "when it is compiled")
        for bench in benches:
            for use in _uses(subject, caching, bench, "when it comes from files"):
                is_kept = use.is_hit or use.reason.endswith(KEEPS_NOTHING)
                check(is_kept, f"the compiled parts could not be loaded: {use}")


def parts_that_cannot_be_used_are_compiled_anew(subject: BackendUnderTest) -> None:
    """Parts of damaged files and of refused programs are compiled again, right."""
    if not keeps_programs(subject.backend):
        raise NothingToKeepError("the core keeps none of its programs")
    refusing = replace(subject.options, registry=_refusing(subject))
    for case in samples(subject):
        bench = sample_bench(subject, case)
        with _temporary_folder() as folder:
            caching = CompilationCaching(folder)
            _uses(subject, caching, bench, "when it is compiled")
            for path in Path(folder).iterdir():
                os.truncate(path, path.stat().st_size // 2)
            uses = [*_uses(subject, caching, bench, "when its files are damaged")]
            uses += _uses(subject, caching, bench, "when its programs are refused", refusing)
            for use in uses:
                check(not use.is_hit, f"what cannot be used was loaded: {use}")


class _RefusingPrograms(IPrograms):
    """Programs of a backend, none of which it takes any more."""

    def __init__(self, programs: IPrograms) -> None:
        self._programs = programs

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        return self._programs.save(program, options)

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return ProgramCheck(ProgramFit.REBUILD, "the kit refuses it")

    def load(self, saved: SavedProgram) -> object:
        return self._programs.load(saved)


def _refusing(subject: BackendUnderTest) -> BackendRegistry:
    """A registry with a copy of the backend that refuses cached parts."""
    if subject.is_isolated:
        raise NotApplicableError("its programs are in a process of their own")
    try:
        backend = _copy_that_refuses(subject.raw_backend)
    except (TypeError, AttributeError) as error:
        raise NotApplicableError(f"its programs cannot be refused for it: {error}") from error
    registry = BackendRegistry()
    registry.register(subject.backend_id, lambda: backend)
    return registry


def _copy_that_refuses(raw: IBackendInternal) -> IBackendInternal:
    """A copy of a backend that refuses cached parts, as do those of its runtimes' own."""
    backend = copy(raw)

    def get_programs() -> IPrograms | None:
        programs = raw.get_programs()
        return None if programs is None else _RefusingPrograms(programs)

    def for_runtime(options: OptionValues) -> IBackendInternal:
        own = raw.for_runtime(options)
        return backend if own is raw else _copy_that_refuses(own)

    backend.get_programs = get_programs  # type: ignore[method-assign]
    backend.for_runtime = for_runtime  # type: ignore[method-assign]
    return backend


def _uses(
    subject: BackendUnderTest,
    caching: CompilationCaching,
    bench: Bench,
    when: str,
    options: RuntimeOptions | None = None,
) -> tuple[CacheUse, ...]:
    """Load a network in a runtime of its own, check its answers, and return the cache's use."""
    with Runtime(replace(options or subject.options, caching=caching)) as runtime:
        network_id = runtime.load_network(bench.graph)
        bench.run(runtime, network_id, when)
        placement = runtime.get_network(network_id).placement
        return () if placement is None else placement.cache_uses


_ODD_NOTES: tuple[dict[str, object], ...] = (
    {},
    {"format": None, "version": [], "abi": 2**70},
    {"": {"": [None, True, -1.5, "\0"]}},
)
"""What a damaged file, or one of another version, may have in the place of a program's notes."""


def saved_programs_compute_the_same(subject: BackendUnderTest) -> None:
    """Programs of `IPrograms.save` are accepted by `check`, taken by `load`, and right."""
    backend = subject.backend
    kinds = (IPrograms, type(None))
    programs = ask_method(backend.get_id(), kinds, backend, "get_programs")
    if programs is None:
        raise NothingToKeepError("it has no programs for compiled models")
    for odd in _ODD_NOTES:
        answer = ask_method(backend.get_id(), ProgramCheck, programs, "check", odd, {})
        is_taken = answer.fit is ProgramFit.ACCEPTED
        check(not is_taken, f"check accepts a program that is described by {odd!r}")
        check(bool(answer.reason), f"check gives no reason for refusing {odd!r}")
    pairs = with_constants(subject)  # whose programs must not be taken for each other's
    cases = dict.fromkeys((*samples(subject), *(case for pair in pairs for case in pair)))
    with _temporary_folder() as folder:
        paths = [Path(folder, f"{number}.armpy") for number in range(len(cases))]
        benches = [sample_bench(subject, case) for case in cases]
        for bench, path in zip(benches, paths, strict=True):
            _check_saved(subject, bench, path)
        load = partial(_uses_of_file, subject.options, benches[0], paths[0], "loaded again")
        check_growth(
            Repetition(
                load, "loads of a compiled model", _LOADS, object_bytes=1 << 16, budget_s=0.2
            )
        )


_LOADS = 12
"""Loads of a file after which nothing of them may be open: files, threads, processes."""


def _check_saved(subject: BackendUnderTest, bench: Bench, path: Path) -> None:
    """Save a network that is the backend's alone; every part has to come from the file."""
    uses = _saved_uses(subject.options, bench, path)
    again = "when it comes from a compiled model again"
    for use in (*uses, *_uses_of_file(subject.options, bench, path, again)):
        check(use.is_hit, f"the saved parts of {bench.operations} could not be loaded: {use}")


def _saved_uses(options: RuntimeOptions, bench: Bench, path: Path) -> tuple[CacheUse, ...]:
    """Save a network in one runtime, run it from the file in another; return the file's use."""
    with Runtime(options) as runtime:
        model = Model(bench.graph, runtime)
        bench.run(runtime, model.network_id, "before it is saved")
        model.save(path)
    return _uses_of_file(options, bench, path, "when it comes from a compiled model")


def _uses_of_file(
    options: RuntimeOptions, bench: Bench, path: Path, when: str
) -> tuple[CacheUse, ...]:
    """Run a saved network in a runtime of its own, and return the file's use."""
    options = replace(options, trusted_keys=(), code=TRUSTED)
    with Runtime(options) as runtime:
        loaded = load_prepared(LoadRequest(path, LoadOptions(runtime=runtime)))
        bench.run(runtime, loaded.network_id, when)
        placement = loaded.placement
        return () if placement is None else placement.cache_uses


def every_attribute_comes_back(subject: BackendUnderTest) -> None:
    """Each operation with each attribute away from its default, saved and loaded, is the same."""
    _check_all(subject, _by_operation(subject))


def patterns_come_back(subject: BackendUnderTest) -> None:
    """Compiled patterns of layers compute the same after saving and loading."""
    _check_all(subject, _of_patterns(subject))


def _check_all(subject: BackendUnderTest, benches: Iterable[Bench]) -> None:
    """Run networks from what their backend has kept; CpuRef runs what that does not take."""
    backend = subject.backend
    kinds = (IPrograms, type(None))
    has_programs = ask_method(backend.get_id(), kinds, backend, "get_programs") is not None
    has_files = keeps_programs(backend)
    if not has_programs:
        raise NothingToKeepError("it keeps none of its compiled parts")
    options = subject.mixed.options
    with _temporary_folder() as folder:
        caching = CompilationCaching(Path(folder, "parts"))
        for number, bench in enumerate(benches):
            # Of parts that were left as they are there is nothing in the file.
            _saved_uses(options, bench, Path(folder, f"{number}.armpy"))
            if has_files:
                for when in ("when it is compiled", "when it comes from files"):
                    _uses(subject, caching, bench, when, options)


def _by_operation(subject: BackendUnderTest) -> Iterator[Bench]:
    """Networks of the layers of one operation each that the backend takes."""
    every = attribute_cases()
    exact = (c for c in sample_cases() if c.id.partition("/")[2].startswith(ALL_BITS))
    for cases in (*every.values(), *((case,) for case in exact)):
        supported = [case for case in cases if subject.takes(specialized(case))]
        if supported:
            yield side_by_side(subject, supported)


def _of_patterns(subject: BackendUnderTest) -> Iterator[Bench]:
    """The kit's patterns of which the backend takes a layer, and those that it declares."""
    for pattern in (*kit_patterns(), *subject.patterns):
        graph = pattern.graph
        if any(subject.supports(specialize(graph)).values()):
            try:
                yield made_bench(subject, graph, pattern.feeds())
            except BackendCapabilityError:  # CpuRef has no right answer
                if pattern.expected is not None:
                    yield Bench(graph, pattern.feeds(), pattern.expected)
