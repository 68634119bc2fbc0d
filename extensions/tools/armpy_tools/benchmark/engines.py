"""Loads a subject on the engine that it names; this one's own is armpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import armpy
from armpy.cli.inputs.complete import said_shapes
from armpy.cli.inputs.values import arrays_with_shapes
from armpy.model import InputShapes, LoadOptions, dimension_names_of
from armpy_tools.benchmark.inputs import Array, chosen_shapes, filled_arrays, fits
from armpy_tools.benchmark.subject_model import ISubjectModel, items_of
from armpy_tools.benchmark.subjects import ARMPY, Subject

if TYPE_CHECKING:
    from armpy.model import Model

# What a subject does not need is not part of its memory, nor of the time it takes to load.
# ruff: noqa: PLC0415


def load(subject: Subject) -> ISubjectModel:
    """Load a subject.

    Raises
    ------
    ArmpyError
        If it cannot be loaded, or its engine is not installed.
    """
    if subject.engine == ARMPY:
        return ArmpySubjectModel(subject, load_model(subject))
    from armpy_tools.benchmark.peer import load_peer

    return load_peer(subject)


def load_model(subject: Subject, *, profiling: bool = False) -> Model:
    """Load a model as a subject says."""
    load_options: dict[str, Any] = dict(subject.load_options)  # Any: by name
    paths = load_options.pop("dynamic_backends_path", None)
    options = LoadOptions(
        backends=subject.backends, num_threads=subject.num_threads, **load_options
    )
    for_runtime: dict[str, Any] = {"profiling": True} if profiling else {}  # Any: by name
    if paths:
        for_runtime["dynamic_backends_path"] = paths
    if subject.backend_options:
        for_runtime["backend_options"] = subject.backend_options
    if for_runtime:
        runtime = armpy.Runtime(armpy.RuntimeOptions(**for_runtime, **options.values_for_runtime()))
        options = options.on(runtime)
    return armpy.load(subject.model, **options.given())


class ArmpySubjectModel(ISubjectModel):
    """A model that armpy runs, with its inputs and outputs bound, as those of other engines are."""

    def __init__(self, subject: Subject, model: Model) -> None:
        self._subject = subject
        self.model = model
        self.feeds: dict[str, Array] = {}
        self._shapes = InputShapes()

    def fit_shapes(self) -> None:
        """Read the caller's arrays, and reshape the model if its file has fixed other shapes."""
        specs = self.model.inputs
        request = self._subject.input_request
        self.feeds = arrays_with_shapes(specs, request)
        shapes = said_shapes(specs, request, self.feeds)
        model = self.model
        self._shapes = chosen_shapes(
            specs,
            model.default_shapes,
            shapes,
            self._subject.batch,
            lambda: dimension_names_of(model.metadata),
        )
        by_name = self._shapes.by_name
        others = {s.name: by_name[s.name] for s in specs if not fits(s, by_name[s.name])}
        if others:
            self.model = self.model.reshape(others)

    def prepare_inputs(self, seed: int) -> None:
        """Make arrays for all inputs: as the caller says, or random ones."""
        self.feeds = filled_arrays(
            self.model.inputs, self._subject, self.feeds, self._shapes.by_name, seed
        )

    def first_caller(self) -> Callable[[], object]:
        """A call of `Model.run`: to bind takes what shapes have been prepared."""
        return self._run

    def _run(self) -> None:
        with self._shapes.explained():
            self.model.run(self.feeds)

    def caller(self) -> Callable[[], object]:
        """An execution that is bound; of a model that runs from a file `Model.run` with arrays."""
        feeds = {name: array.copy() for name, array in self.feeds.items()}
        if not self.model.is_light:
            return self.model.bind(feeds, cancellable=False)
        run, outputs = self.model.run, self.model.run(feeds)
        return lambda: run(feeds, outputs)

    @property
    def items(self) -> int:
        """The first axis of the first input, if the batch was chosen, or it is open."""
        return items_of(self._subject, [a.shape for a in self.feeds.values()])

    def placement(self) -> str:
        """The summary of the placement report."""
        placement = self.model.placement
        return "" if placement is None else str(placement)

    def memory(self) -> tuple[int | None, int | None]:
        """As the network says."""
        from armpy.graph import nested_graphs

        placement = self.model.placement
        graph = self.model.graph
        values = (v for part in (graph, *nested_graphs(graph)) for v in part.values())
        weights = sum(value.data.nbytes for value in values if value.data is not None)
        return weights, None if placement is None else placement.peak_bytes
