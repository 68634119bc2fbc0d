"""Engines that a subject may run on, behind one interface; this one's own, armpy."""

from __future__ import annotations

import tokenize
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from armpy.errors import InvalidArgumentError
from armpy.tools.benchmark.inputs import Array, chosen_shapes, fits, random_array
from armpy.tools.benchmark.subjects import ARMPY, Subject

if TYPE_CHECKING:
    from armpy.model import Model

# What a subject does not need is no part of its memory, nor of the time it takes to load.
# ruff: noqa: PLC0415


class ILoaded(ABC):
    """A subject that is loaded."""

    @abstractmethod
    def fit_shapes(self) -> None:
        """Have the model take the subject's shapes; a part of loading.

        Raises
        ------
        ArmpyError
            If it does not take them.
        """

    @abstractmethod
    def prepare_inputs(self, seed: int) -> None:
        """Make inputs of the subject's shapes, behind `fit_shapes`.

        Raises
        ------
        ArmpyError
            If the model does not take them.
        """

    def first_caller(self) -> Callable[[], object]:
        """What runs it for the first time, as an application does that has just loaded it."""
        return self.caller()

    @abstractmethod
    def caller(self) -> Callable[[], object]:
        """What runs the model once, for one thread, with arrays of its own that are bound."""

    @property
    @abstractmethod
    def items(self) -> int:
        """Of the batch of one run."""

    @abstractmethod
    def placement(self) -> str:
        """Who runs how much of it."""

    def memory(self) -> tuple[int | None, int | None]:
        """Bytes of weights, and of working memory for one execution; None if not known."""
        return None, None


def load(subject: Subject) -> ILoaded:
    """Load a subject.

    Raises
    ------
    ArmpyError
        If it cannot be loaded, or its engine is not installed.
    """
    if subject.engine == ARMPY:
        return ArmpyLoaded(subject, load_model(subject))
    from armpy.tools.benchmark.peers import load_peer

    return load_peer(subject)


def load_model(subject: Subject, *, profiling: bool = False) -> Model:
    """Load a model as a subject says."""
    import armpy

    options = dict(subject.load_options)
    for_runtime: dict[str, Any] = {  # Any: by name
        name: value
        for name in ("on_fallback", "dynamic_backends_path")
        if (value := options.pop(name, None))
    }
    if subject.backend_options:
        for_runtime["backend_options"] = subject.backend_options
    given: dict[str, Any] = {k: v for k, v in options.items() if v is not None}  # Any: by name
    given |= {"backends": subject.backends, "num_threads": subject.num_threads}
    if not (for_runtime or profiling):
        return armpy.load(subject.model, **given)
    names = ("backends", "num_threads", "preference", "trusted_keys", "code")
    for_runtime |= {n: given.pop(n) for n in names if given.get(n) is not None}
    for name in names:
        given.pop(name, None)
    runtime = armpy.Runtime(armpy.RuntimeOptions(profiling=profiling, **for_runtime))
    return armpy.load(subject.model, runtime=runtime, **given)


class ArmpyLoaded(ILoaded):
    """A model that armpy runs, with its inputs and outputs bound, as those of other engines are.

    Parameters
    ----------
    subject : Subject
    model : Model
    """

    def __init__(self, subject: Subject, model: Model) -> None:
        self._subject = subject
        self.model = model
        self.feeds: dict[str, Array] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}

    def fit_shapes(self) -> None:
        """Read the caller's arrays, and reshape the model if its file has fixed other shapes."""
        specs = self.model.inputs
        self.feeds = read_arrays(self._subject.arrays, [spec.name for spec in specs])
        given = {**self._subject.shapes, **{name: a.shape for name, a in self.feeds.items()}}
        batch = self._subject.batch
        self._shapes = chosen_shapes(specs, self.model.default_shapes, given, batch)
        others = {s.name: self._shapes[s.name] for s in specs if not fits(s, self._shapes[s.name])}
        if others:
            self.model = self.model.reshape(others)

    def prepare_inputs(self, seed: int) -> None:
        """Make random arrays for what the caller has given none for."""
        generator = np.random.default_rng(seed)
        for spec in self.model.inputs:
            array = random_array(spec.info, self._shapes[spec.name], generator)
            self.feeds.setdefault(spec.name, array)

    def first_caller(self) -> Callable[[], object]:
        """A call of `Model.run`: to bind takes what shapes have been prepared."""
        return lambda: self.model.run(self.feeds)

    def caller(self) -> Callable[[], object]:
        """An execution that is bound; of a model that runs from a file `Model.run` with arrays."""
        feeds = {name: array.copy() for name, array in self.feeds.items()}
        if not self.model.is_quick:
            return self.model.bind(feeds, cancellable=False)
        run, outputs = self.model.run, self.model.run(feeds)
        return lambda: run(feeds, outputs)

    @property
    def items(self) -> int:
        """The first axis of the first input, if the batch was chosen, or it is open."""
        return items_of(self._subject, [a.shape for a in self.feeds.values()])

    def placement(self) -> str:
        """The summary of the placement report."""
        found = self.model.placement
        return "" if found is None else str(found)

    def memory(self) -> tuple[int | None, int | None]:
        """As the network says."""
        from armpy.graph import nested_graphs

        placement = self.model.placement
        graph = self.model.graph
        values = (v for part in (graph, *nested_graphs(graph)) for v in part.values())
        weights = sum(value.data.nbytes for value in values if value.data is not None)
        return weights, None if placement is None else placement.peak_bytes


def items_of(subject: Subject, shapes: Sequence[Sequence[int]]) -> int:
    """How many items one run computes: the batch that was chosen, else one."""
    if subject.batch is not None:
        return subject.batch
    sizes = {shape[0] for shape in shapes if len(shape) > 1}
    return sizes.pop() if subject.shapes and len(sizes) == 1 else 1


_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    SyntaxError,
    TypeError,
    OverflowError,
    MemoryError,  # a shape that the file tells and does not hold
    tokenize.TokenError,  # a header that ends early
)
"""What reading a damaged array may raise."""


def read_arrays(files: Mapping[str, str], names: Sequence[str]) -> dict[str, Array]:
    """Arrays of files, by the inputs that they are for.

    Raises
    ------
    InvalidArgumentError
        If there is no such input, or a file holds no array.
    """
    arrays = {}
    for name, path in files.items():
        if name not in names:
            raise InvalidArgumentError(
                "the model has no such input",
                where="--input",
                expected=", ".join(f"'{known}'" for known in names),
                actual=f"'{name}'",
            )
        try:
            with open(path, "rb") as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
        except _UNREADABLE as error:
            told = error.args[0] if isinstance(error, tokenize.TokenError) else error
            raise InvalidArgumentError(
                f"the file holds no array: {told}", where=f"--input {name}={path}"
            ) from error
    return arrays
