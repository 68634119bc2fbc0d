"""Rules about compiled subgraphs, which the core keeps in files for a backend."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from armpy.backend import CacheUse, IPrograms, ProgramCheck, ProgramFit
from armpy.caching.settings import CompilationCaching
from armpy.optimizer.cached import KEEPS_NOTHING
from armpy.plugins.boundary import ask_method
from armpy.prepared.trust import TRUSTED
from armpy.runtime import Model, Runtime
from armpy.runtime.load_request import LoadRequest
from armpy.runtime.quick_loading import load_prepared
from armpy.testing.contract.case import NothingToKeepError, check
from armpy.testing.contract.networks import Bench, sample_bench, samples, with_constants
from armpy.testing.subject import Subject


def kept_parts_compute_the_same(subject: Subject) -> None:
    """What `save_compiled` wrote is taken by `load_compiled`, and gives the right answers."""
    backend = subject.backend
    if backend.number_of_cache_files + backend.number_of_data_cache_files == 0:
        raise NothingToKeepError("it keeps no compiled files")
    pairs = with_constants(subject)  # whose files must not be taken for each other's
    cases = dict.fromkeys((*samples(subject), *(case for pair in pairs for case in pair)))
    benches = [sample_bench(subject, case) for case in cases]
    with TemporaryDirectory(prefix="armpy-conformance-") as folder:
        caching = CompilationCaching(folder)
        for bench in benches:
            _uses(subject, caching, bench, "when it is compiled")
        for bench in benches:
            for use in _uses(subject, caching, bench, "when it comes from files"):
                is_kept = use.is_hit or use.reason.endswith(KEEPS_NOTHING)
                check(is_kept, f"what was compiled could not be loaded: {use}")


def _uses(
    subject: Subject, caching: CompilationCaching, bench: Bench, when: str
) -> tuple[CacheUse, ...]:
    """Load a network in a runtime of its own, check its answers, and say what was found."""
    with Runtime(replace(subject.options, caching=caching)) as runtime:
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


def saved_programs_compute_the_same(subject: Subject) -> None:
    """What `IPrograms.save` wrote is accepted by `check` and taken by `load`, and is right."""
    backend = subject.backend
    kinds = (IPrograms, type(None))
    programs = ask_method(backend.backend_id, kinds, backend, "get_programs")
    if programs is None:
        raise NothingToKeepError("it has no programs for prepared files")
    for odd in _ODD_NOTES:
        answer = ask_method(backend.backend_id, ProgramCheck, programs, "check", odd, {})
        is_taken = answer.fit is ProgramFit.ACCEPTED
        check(not is_taken, f"check accepts a program of which it is told {odd!r}")
        check(bool(answer.reason), f"check gives no reason for refusing {odd!r}")
    pairs = with_constants(subject)  # whose programs must not be taken for each other's
    cases = dict.fromkeys((*samples(subject), *(case for pair in pairs for case in pair)))
    with TemporaryDirectory(prefix="armpy-conformance-") as folder:
        for number, case in enumerate(cases):
            _check_saved(subject, sample_bench(subject, case), Path(folder, f"{number}.armpy"))


def _check_saved(subject: Subject, bench: Bench, path: Path) -> None:
    """Save a network in one runtime, and run it from the file in another one."""
    with Runtime(subject.options) as runtime:
        model = Model(bench.graph, runtime)
        bench.run(runtime, model.network_id, "before it is saved")
        model.save(path)
    options = replace(subject.options, trusted_keys=(), code=TRUSTED)
    with Runtime(options) as runtime:
        loaded = load_prepared(LoadRequest(path, runtime=runtime))
        bench.run(runtime, loaded.network_id, "when it comes from a prepared file")
        placement = loaded.placement
        for use in () if placement is None else placement.cache_uses:
            check(use.is_hit, f"what was saved could not be loaded: {use}")
