"""Finds sums and products of bytes with constants after each other: one command computes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from armpy.graph import Layer, SubgraphView
from armpy_numba_acc.lowering.byte_lines import constant_operand
from armpy_numba_acc.passes.consumers import only_consumer

_LONGEST = 3
"""Layers of a chain: kernels are made for each number of them."""


def find_byte_chains(
    view: SubgraphView, taken: Collection[Layer] = ()
) -> Mapping[Layer, tuple[Layer, ...]]:
    """Chains of at least two layers, by their last layer.

    Parameters
    ----------
    taken
        Layers that are computed with others already.
    """
    outside, used = set(view.outputs), set(taken)
    chains: dict[Layer, tuple[Layer, ...]] = {}
    for layer in view.layers:
        if layer in used or constant_operand(layer) is None:
            continue
        chain = [layer]
        while len(chain) < _LONGEST:
            following = only_consumer(view, chain[-1].output, outside)
            if following is None or following in used or constant_operand(following) is None:
                break
            chain.append(following)
        if len(chain) > 1:
            chains[chain[-1]] = tuple(chain)
            used.update(chain)
    return chains
