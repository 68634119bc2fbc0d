"""Ray Data: what `Dataset.map_batches` takes to run a model on every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.data import ActorPoolStrategy

from armpy_serving.cluster_resources import resource_name
from armpy_serving.predictor import Predictor
from armpy_serving.ray.sent_model import SentModel


class ActorPredictor:
    """A `Predictor` in an actor, which makes its model at once: errors come before any row.

    Parameters
    ----------
    arguments : mapping of str to object
        Arguments of the predictor.
    """

    def __init__(self, model: SentModel, arguments: Mapping[str, Any]) -> None:
        self._predictor = Predictor(model.on_this_node(), **arguments)
        self._predictor.prepare()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a batch."""
        return self._predictor(batch)


def predictor(
    model: object,
    device: str | None = None,
    *,
    num_actors: int | tuple[int, int] = 1,
    num_cpus: float = 1,
    batch_size: int | None = None,
    resources: Mapping[str, float] | None = None,
    **arguments: Any,  # Any: as `Predictor` takes them
) -> dict[str, Any]:
    """Arguments of `ray.data.Dataset.map_batches` that run a model on every row.

    Parameters
    ----------
    model : path or bytes-like
        Need not be on other nodes: its bytes are put into Ray's store once, and written on each
        node once. A node that has the same file at the same path uses that.
    device : str, optional
        A backend that is to run all of the model. Each actor takes one unit of the resource
        ``armpy_<device>``, which nodes announce with ``ray start $(armpy ray-resources)``; an
        actor that finds the backend missing, or a layer that it does not take, ends the job.
    num_actors : int, or (int, int)
        Number of actors; or the fewest and the most, between which Ray chooses.
    num_cpus : float
        Processors of each actor, and threads of its model.
    batch_size : int, optional
        Rows of each call; whole blocks if left out.
    resources : mapping of str to float, optional
        Others of each actor.
    **arguments
        Arguments of `armpy_serving.Predictor`.

    Raises
    ------
    InvalidArgumentError, ParserError
        As `armpy_serving.Predictor`.

    Examples
    --------
    >>> scored = dataset.map_batches(                                # doctest: +SKIP
    ...     **armpy_serving.ray.predictor("model.tflite", num_actors=2, batch_size=256)
    ... )
    """
    needed = dict(resources or {})
    if device is not None:
        needed.setdefault(resource_name(device), 1)
        arguments = {"backends": [device], "on_fallback": "error", **arguments}
    arguments.setdefault("num_threads", max(1, int(num_cpus)))
    sent = SentModel(model)
    if not sent.is_own:  # the file that a node writes of it is trusted no more than it is here
        arguments.setdefault("code", "signed")
    if isinstance(num_actors, tuple):
        compute = ActorPoolStrategy(min_size=num_actors[0], max_size=num_actors[1])
    else:
        compute = ActorPoolStrategy(size=num_actors)
    return {
        "fn": ActorPredictor,
        "fn_constructor_args": (sent, arguments),
        "compute": compute,
        "num_cpus": num_cpus,
        "batch_size": batch_size,
        "batch_format": "numpy",
        **({"resources": needed} if needed else {}),
    }
