"""Decisions on placement: by the order of the backends, by their figures, or by trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.compiler import Evaluator
from armpy.compiler.assign import Exclusions
from armpy.execution.settings import NetworkSettings
from armpy.graph import Graph
from armpy.plugins.proxy.guard import BackendProxy
from armpy.types import Preference

if TYPE_CHECKING:
    from armpy.compiler.cost.decision import PlacementDecision
    from armpy.execution.placement_benchmark import LoadTrial


def decide(
    graph: Graph,
    backends: Sequence[BackendProxy],
    evaluator: Evaluator | None,
    settings: NetworkSettings,
    load: LoadTrial,
    excluded: Exclusions | None = None,
    *,
    measures: bool = True,
) -> PlacementDecision | None:
    """Where the layers of a graph are to run, by the preference of its settings.

    Parameters
    ----------
    graph : Graph
        Fully shaped, after the optimiser's passes.
    backends : sequence of BackendProxy
        Most preferred first.
    evaluator : Evaluator, optional
    settings : NetworkSettings
    load : LoadTrial
        Loads candidates that are run.
    excluded : dict, optional
        Layers that backends have failed with.
    measures : bool
        Whether candidates may be run.

    Returns
    -------
    PlacementDecision or None
        None if the order of the backends decides, or nobody takes a layer.

    Notes
    -----
    What is measured is kept, for this machine, under all that it depends on: the graph, who takes
    which layer, versions and options of the backends, the number of processors. Asked again, it
    is not measured again. Nothing is run in protected mode, after a backend has failed, or of
    graphs that control flow runs.
    """
    preference = settings.optimizer.preference
    if preference is Preference.ORDER or not graph.layers:
        return None
    # Most networks are placed by the order of their backends, and start without the cost model.
    from armpy.execution.placement_search import search  # noqa: PLC0415 - as above

    return search(graph, backends, evaluator, settings, load, excluded or {}, measures=measures)
