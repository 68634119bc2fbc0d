"""Compiles a region to a program."""

from __future__ import annotations

from armpy.graph import SubgraphView
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.lowering.chains import find_chains, lower_chain
from armpy_numba_acc.lowering.emitter import Emitter
from armpy_numba_acc.lowering.fusion import find_fusions
from armpy_numba_acc.lowering.program import Program
from armpy_numba_acc.lowering.registry import lowerings


def lower_region(view: SubgraphView, isa: Isa, num_threads: int = 1) -> Program:
    """Lower every layer of a region.

    Parameters
    ----------
    view : SubgraphView
        Whose layers `armpy_numba_acc.lowering.registry.support` has taken.
    isa : Isa
    num_threads : int
        Most threads that will run the program.
    """
    fusions = find_fusions(view)
    emitter = Emitter(view, isa, num_threads, fusions)
    # What a layer absorbs is computed with it; a chain, where its last layer stands.
    absorbed = {layer for fusion in fusions.values() for layer in fusion.absorbed}
    chains = find_chains(view, absorbed)
    joined = absorbed | {layer for chain in chains.values() for layer in chain.layers}
    for layer in view.layers:
        if layer in chains:
            lower_chain(emitter, chains[layer])
        elif layer not in joined:
            lowerings()[type(layer.operation)].lower(emitter, layer)
    return emitter.finish()
