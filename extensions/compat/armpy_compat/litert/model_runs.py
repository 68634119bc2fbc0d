"""Runs of a model's subgraphs, each made when it is first needed."""

from __future__ import annotations

from armpy_compat.litert import texts
from armpy_compat.litert.model_provider import ModelProvider
from armpy_compat.litert.subgraph_run import SubgraphRun
from armpy_compat.litert.tensor_details import Details, tensor_details


class ModelRuns:
    """Runs of a model's subgraphs by index.

    Parameters
    ----------
    preserves_all : bool
        Whether callers get every tensor that a run computes.

    Attributes
    ----------
    main : SubgraphRun
        Run of the main subgraph.
    file : FileRecord
        The model's file.
    """

    def __init__(self, provider: ModelProvider, preserves_all: bool) -> None:
        self._provider = provider
        self._preserves_all = preserves_all
        self.file = provider.file
        self.main = SubgraphRun(provider, 0, preserves_all)
        self._runs = {0: self.main}

    def __getitem__(self, subgraph: int) -> SubgraphRun:
        run = self._runs.get(subgraph)
        if run is None:
            count = len(self.file.subgraphs)
            if not 0 <= subgraph < count:
                raise texts.no_subgraph(subgraph, count)
            run = self._runs[subgraph] = SubgraphRun(self._provider, subgraph, self._preserves_all)
        return run

    def details(self, tensor: int, subgraph: int) -> Details:
        """Describe a tensor as it is now.

        Raises
        ------
        ValueError
            If there is no such tensor or subgraph.
        """
        run = self[subgraph]
        index = run.checked(tensor)
        return tensor_details(run.subgraph.tensors[index], index, run.shape(index))

    def reset_variables(self) -> None:
        """Give the state between calls its initial elements again."""
        for run in self._runs.values():
            run.reset_variables()
