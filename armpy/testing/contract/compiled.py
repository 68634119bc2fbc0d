"""Rules about compiled subgraphs, which the core keeps in files for a backend."""

from __future__ import annotations

from dataclasses import replace
from tempfile import TemporaryDirectory

from armpy.backend import CacheUse
from armpy.caching.settings import CompilationCaching
from armpy.optimizer.cached import KEEPS_NOTHING
from armpy.runtime import Runtime
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
