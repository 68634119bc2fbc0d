"""Gives each layer to the first backend that supports it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from armpy.backend import IBackendInternal, ILayerSupport, ReasonCode, Support
from armpy.errors import BackendCapabilityError
from armpy.graph import Graph, Layer
from armpy.optimizer.placement import Refusal
from armpy.types import BackendId

_log = logging.getLogger("armpy.optimizer")

Exclusions = dict[tuple[int, BackendId], Support]
"""Pairs of layer id and backend that have turned out not to work, with the reason."""


@dataclass
class Assignment:
    """Which backend each layer runs on.

    Parameters
    ----------
    backends : dict of int to IBackendInternal
        By layer id.
    refusals : list of Refusal
    """

    backends: dict[int, IBackendInternal] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)

    def backend_id(self, layer: Layer) -> BackendId:
        """Id of the backend that a layer runs on."""
        return self.backends[layer.id].backend_id


class SupportOracle:
    """Asks backends about layers, each question once.

    Parameters
    ----------
    backends : sequence of IBackendInternal
        Most preferred first.
    """

    def __init__(self, backends: Sequence[IBackendInternal]) -> None:
        self.backends = tuple(backends)
        self._supports: dict[BackendId, ILayerSupport] = {}
        self._answers: dict[tuple[Layer, BackendId], Support] = {}

    def ask(self, backend: IBackendInternal, layer: Layer) -> Support:
        """Whether a backend supports a layer; what it raises becomes a refusal."""
        key = (layer, backend.backend_id)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._ask(backend, layer)
        return answer

    def _ask(self, backend: IBackendInternal, layer: Layer) -> Support:
        """Put the question to the backend."""
        try:
            support = self._supports.get(backend.backend_id)
            if support is None:
                support = self._supports[backend.backend_id] = backend.get_layer_support()
            answer = support.is_layer_supported(
                layer.operation, layer.input_infos, layer.output_infos
            )
        except Exception as error:  # noqa: BLE001 - plugin boundary: becomes the reason
            _log.exception("%s failed when asked about %s", backend.backend_id, layer.where)
            return Support.no(ReasonCode.OTHER, f"is_layer_supported raised {error!r}")
        if not isinstance(answer, Support):
            text = f"is_layer_supported answered {answer!r}, not a Support"
            return Support.no(ReasonCode.OTHER, text)
        return answer


def assign_backends(
    graph: Graph, oracle: SupportOracle, excluded: Mapping[tuple[int, BackendId], Support]
) -> Assignment:
    """Assign every layer.

    Parameters
    ----------
    excluded : mapping
        Refusals that are known from earlier attempts.

    Raises
    ------
    BackendCapabilityError
        If no backend takes a layer; the text gives every backend's reason.
    """
    result = Assignment()
    for layer in graph.layers:
        refusals = []
        for backend in oracle.backends:
            answer = excluded.get((layer.id, backend.backend_id))
            if answer is None:
                answer = oracle.ask(backend, layer)
            if answer:
                result.backends[layer.id] = backend
                break
            refusals.append(_refusal(layer, backend, answer))
        else:
            raise _unplaceable(layer, refusals)
        result.refusals += refusals
    return result


def _refusal(layer: Layer, backend: IBackendInternal, answer: Support) -> Refusal:
    """One line of the placement report."""
    code = answer.code if isinstance(answer.code, ReasonCode) else ReasonCode.OTHER
    return Refusal(
        layer.id,
        layer.name,
        layer.operation.name,
        backend.backend_id,
        code.value,
        str(answer.text or "no reason given"),
    )


def _unplaceable(layer: Layer, refusals: Sequence[Refusal]) -> BackendCapabilityError:
    """The error for a layer that no backend takes."""
    return BackendCapabilityError(
        "no allowed backend supports this layer: "
        + "; ".join(f"{refusal.backend}: {refusal.text}" for refusal in refusals),
        where=layer.where,
        fix="Allow another backend, CpuRef for example",
    )
