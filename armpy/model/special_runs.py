"""Special runs: with a deadline, in memory that the caller holds, or showing every value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError
from armpy.execution.calls.run import read_inputs, run_by_name
from armpy.model import late

if TYPE_CHECKING:
    from armpy.execution.calls.debugged_network import DebuggedNetwork
    from armpy.execution.calls.network_memory import NetworkMemory
    from armpy.execution.loaded_network import LoadedNetwork
    from armpy.execution.wrappers.debugging import DebugCallback
    from armpy.ops.operation import Array


def run_with(
    network: LoadedNetwork,
    inputs: Mapping[str, object],
    outputs: Mapping[str, object] | None,
    quantize_inputs: bool,
    memory: NetworkMemory | None,
    debug: DebugCallback | None,
    deadline_s: float | None,
) -> dict[str, Array]:
    """Run with one of the things that few runs have; parameters as of `armpy.Model.run`.

    Raises
    ------
    InvalidArgumentError
        If two of them are given; else as for `armpy.Model.run`.
    """
    if deadline_s is None:
        chosen = _chosen(network, memory, debug)
        return run_by_name(chosen, inputs, outputs, quantize_inputs)
    # A run that is late is left to end by itself, and goes on writing to whatever it was given.
    if memory is not None or debug is not None:
        raise InvalidArgumentError(
            "a run with a deadline may have to be left alone with all that it uses",
            where="memory" if debug is None else "debug",
            fix="Leave it out, or deadline_s",
        )
    arrays = read_inputs(network, inputs, quantize_inputs)
    return late.run(network, arrays, outputs, deadline_s=deadline_s)


def _chosen(
    network: LoadedNetwork, memory: NetworkMemory | None, debug: DebugCallback | None
) -> NetworkMemory | DebuggedNetwork:
    """Choose the network in memory that is given, or with every value an output."""
    if memory is not None and debug is not None:
        raise InvalidArgumentError(
            "working memory has no room for every value",
            where="debug",
            fix="Leave out memory or debug",
        )
    if debug is not None:
        return network.debugging(debug)
    assert memory is not None
    return memory.of(network)
