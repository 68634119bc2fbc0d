"""Which backends would take the layers of a compiled model whose programs cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from armpy.compiler import specialize
from armpy.compiler.assign import SupportOracle
from armpy.core.units import counted
from armpy.execution.setup.options import backend_preferences
from armpy.graph import Layer
from armpy.model.archive.compiled_file import CompiledFile, signature_records
from armpy.model.archive.examined_programs import Machine
from armpy.model.archive.reload import archived_parts, read_signature
from armpy.types import REFERENCE_BACKEND_ID, BackendId


def named_by_environment() -> list[BackendId] | None:
    """The backends that the environment names; None for all."""
    return backend_preferences(None)


def why_untaken(
    file: CompiledFile,
    machine: Machine,
    used: Sequence[Mapping[str, Any]],  # Any: records of programs that are used
) -> str:
    """Why no backend takes a layer without a usable program; empty if each layer is taken.

    CpuRef is asked first, as it takes nearly all layers and compiles none; other backends, which
    may compile each layer that they are asked about, only about what it refuses.

    Raises ParserError if the network cannot be read.
    """
    archived_parts(file)  # an ordinary load reads them, and raises what is wrong with them
    records = _networks(file)
    # Ids are of one network.
    prepared = {number for record in used for number in record["layer_ids"] if len(records) == 1}
    has_reference = not machine.backends.why_unusable(REFERENCE_BACKEND_ID)
    first = [machine.backends.get(REFERENCE_BACKEND_ID)] if has_reference else []
    reference = SupportOracle(first)
    refused = []
    for record in records:
        graph, optimized = read_signature(file.container, record)
        layers = (specialize(graph) if optimized is None else optimized.source).layers
        refused += [x for x in layers if x.id not in prepared and not _takes(reference, x)]
    if not refused:
        return ""
    others = SupportOracle(machine.backends.usable())
    for layer in refused:
        if not _takes(others, layer):
            answers = (f"{b.get_id()}: {others.ask(b, layer).text}" for b in others.backends)
            return f"no backend here takes {layer.where} ({'; '.join(answers)})"
    return ""


def moved(file: CompiledFile, machine: Machine) -> Iterator[str]:
    """A line about each kind of layers that named backends take from others, less preferred ones.

    What a backend compiles of a network changes with them, so that its programs do not fit.
    """
    names = list(machine.named or ())
    backends = [machine.backends.get(name) for name in names]
    oracle = SupportOracle(backends)
    counts: Counter[tuple[BackendId, BackendId]] = Counter()
    for record in _networks(file):
        optimized = read_signature(file.container, record).optimized
        if optimized is None:
            continue
        for layer in optimized.source.layers:
            owner = optimized.assignment[layer.id]
            before = backends[: names.index(owner)] if owner in names else ()
            takers = [b.get_id() for b in before if oracle.ask(b, layer, optimized.source)]
            counts.update((owner, taker) for taker in takers[:1])
    for (owner, taker), count in counts.items():
        yield f"{counted(count, 'layer')} of {owner}: {taker} takes them, and is compiled anew"


def _networks(file: CompiledFile) -> list[Mapping[str, Any]]:  # Any: records of a file
    """A record of each network of a file, which may have several signatures."""
    records = {record["section"]: record for record in signature_records(file.container)}
    return [*records.values()]


def _takes(oracle: SupportOracle, layer: Layer) -> bool:
    """Return whether any backend takes a layer."""
    return any(oracle.ask(backend, layer) for backend in oracle.candidates(layer))
