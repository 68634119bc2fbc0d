"""Shapes for inputs whose sizes a model leaves open, as every command chooses them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from armpy.core.dataclass import dataclass
from armpy.errors import (
    ArmpyError,
    InvalidArgumentError,
    LayerValidationError,
    argument,
    argument_style,
    did_you_mean,
    listed,
)
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.execution import TensorSpec
    from armpy.model.model import Model
    from armpy.plugins.hooks.metadata import ModelMetadata

NamedShapes: TypeAlias = Mapping[str, tuple[int, ...]]

_EXAMPLE_SIDE = 224
"""Height and width of images in examples of shapes."""

_IMAGE_NDIM = 4
"""Dimensions of inputs that are taken for images."""

_EXAMPLE_LENGTH = 128
"""Other open sizes in examples of shapes, but for the batch."""

_MOST_DOUBLED = 7
"""How often a size is doubled in the search for one that a model takes."""

_MOST_HALVED = 8
"""And halved, less one."""

_MOST_TRIED = 8
"""How many shapes are tried for an error about those of a call, which must not take long."""

_LARGEST_IMAGE_FACTOR = 4.0
"""Of heights and widths against the usual ones: larger images take long to try."""


@dataclass(frozen=True, slots=True)
class InputShapes:
    """A shape for each input of a model."""

    by_name: dict[str, tuple[int, ...]] = field(default_factory=dict)
    guessed: tuple[TensorSpec, ...] = ()
    """Inputs with a size that the caller does not say; it is the file's default, or 1."""
    unknown: tuple[TensorSpec, ...] = ()
    """Those of them for which the file has no default."""
    open: tuple[TensorSpec, ...] = ()
    """Inputs that take several shapes."""
    fits: Callable[[NamedShapes], bool] | None = None
    """Whether the model takes shapes of some inputs, with what follows; None if unknown."""

    @property
    def fix(self) -> str:
        """Name an argument that says the first guessed shape; empty if none was guessed."""
        if not self.guessed:
            return ""
        spec = self.guessed[0]
        example = self._example(spec)
        if not example:
            return (
                f"The model takes several sizes, but of input '{spec.name}' none that was tried "
                f"({_tried(spec)}): look up one where the model comes from"
            )
        return f"The model takes several sizes; choose one, for example with {example}"

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Let errors of layers, which may not take the shapes, name a shape that they take."""
        try:
            yield
        except LayerValidationError as error:
            if fix := self.fix:  # a search
                error.fix = fix
            else:
                self.name_example(error)
            raise

    def name_example(self, error: LayerValidationError) -> None:
        """Add shapes that the model takes to the fix of an error, if it is about those of a call.

        Notes
        -----
        A few usual sizes are tried, the nearest first, of the first open input before others.
        Other inputs that have the same open size in the call get the same new one.
        """
        call, error.call_shapes = error.call_shapes, {}
        inputs = [spec for spec in self.open if spec.name in call]
        tried = islice(_neighbours(inputs, call), _MOST_TRIED)
        example = next(filter(self.fits, tried), None) if self.fits else None
        if example is not None:
            changed = {name: shape for name, shape in example.items() if shape != call[name]}
            error.fix += f", for example {_written(changed)}"

    def _example(self, spec: TensorSpec) -> str:
        """An argument with a shape of an input that the model takes; empty if none was found."""
        sizes = _example_sizes(spec)
        if spec.shape is not None and len(spec.shape) > 1 and spec.shape[0] is None:
            # As many rows as the caller says, or one.
            sizes = [(*self.by_name[spec.name][:1], *shape[1:]) for shape in sizes]
        if self.fits is not None:
            found = (shape for shape in sizes if self.fits({spec.name: shape}))
            shape = next(found, None)
        else:
            shape = sizes[0]
        return "" if shape is None else argument("shapes", {spec.name: shape})


def choose_shapes(
    inputs: Sequence[TensorSpec],
    defaults: Sequence[tuple[int, ...] | None],
    shapes: Mapping[str, Sequence[int]],
    read_dimension_names: Callable[[], Mapping[str, Sequence[str]]],
    *,
    image_side: int = 1,
    batch: int | None = None,
) -> InputShapes:
    """Choose a shape for each input.

    An input has its shape in `shapes`, else its own one, else its default. Each other open
    dimension has the size of a dimension in `shapes` with the same name, or 1.

    Parameters
    ----------
    defaults : sequence of (tuple of int or None)
        Of each input, the proposal of the model's file.
    shapes : mapping of str to sequence of int
        The caller's, by input. They are not compared with the inputs' own shapes.
    read_dimension_names : callable
        Return the names of dimensions by input, empty for one without a name; called only if an
        input follows from others.
    image_side : int
        Instead of 1, the size of open heights and widths: open dimensions after the first one of
        inputs of rank 4.
    batch : int, optional
        First size of all inputs that leave it open and have no shape in `shapes`, and size of
        dimensions with the same names.

    Raises
    ------
    InvalidArgumentError
        If `shapes` names an input that the model does not have, or no input takes `batch`.
    """
    names = [spec.name for spec in inputs]
    for name in shapes:
        if name not in names:
            raise InvalidArgumentError(
                "the model has no such input",
                where=f"input '{name}'",
                expected=listed(names),
                actual=f"'{name}'",
                fix=did_you_mean(name, names, "List all names with 'armpy inspect MODEL'"),
            )
    takes_batch = [spec.shape is not None and spec.shape[:1] == (None,) for spec in inputs]
    if batch is not None and not any(takes_batch):
        raise InvalidArgumentError(
            "no input leaves its first size open",
            where=argument("batch", batch),
            actual=", ".join(f"'{spec.name}' {format_shape(spec.shape)}" for spec in inputs),
            fix=f"Leave {argument('batch')} out",
        )
    chosen: dict[str, tuple[int, ...]] = {}
    guessed: list[TensorSpec] = []
    unknown: list[TensorSpec] = []
    sizes: dict[str, int] = {}
    dimension_names: Mapping[str, Sequence[str]] = {}
    is_open = [
        default is None and spec.name not in shapes and not spec.info.is_fully_shaped
        for spec, default in zip(inputs, defaults, strict=True)
    ]
    if (shapes or batch is not None) and any(is_open):
        dimension_names = read_dimension_names()
        sizes = _sizes_by_dimension(dimension_names, shapes)
        for spec, is_batched in zip(inputs, takes_batch, strict=True):
            first_name = "".join(dimension_names.get(spec.name, ())[:1])
            if batch is not None and is_batched and first_name:
                sizes.setdefault(first_name, batch)
    for spec, default, follows, is_batched in zip(
        inputs, defaults, is_open, takes_batch, strict=True
    ):
        first = (batch,) if is_batched and batch is not None else ()
        if not follows:
            own = spec.info.known_shape if spec.info.is_fully_shaped else default
            own = (*first, *(own or ())[len(first) :])
            chosen[spec.name] = tuple(shapes.get(spec.name, own))
            if spec.name not in shapes and not spec.info.is_fully_shaped:
                guessed.append(spec)
            continue
        dims = spec.shape or ()
        dimensions = dimension_names.get(spec.name, ())
        if len(dimensions) != len(dims):  # metadata need not fit the network
            dimensions = [""] * len(dims)
        known = [
            sizes.get(dimension) if dim is None else dim
            for dim, dimension in zip(dims, dimensions, strict=True)
        ]
        known[: len(first)] = first
        if spec.shape is None or None in known:
            guessed.append(spec)
            unknown.append(spec)
        chosen[spec.name] = _completed(known, image_side, 1)
    several = tuple(spec for spec in inputs if not spec.info.is_fully_shaped)
    return InputShapes(chosen, tuple(guessed), tuple(unknown), several)


def input_shapes(
    model: Model, shapes: Mapping[str, Sequence[int]], batch: int | None = None
) -> InputShapes:
    """Choose a shape for each input of a model, as `choose_shapes` does.

    Raises
    ------
    InvalidArgumentError
        If `shapes` names an input that the model does not have, or no input takes `batch`.
    ParserError
        If an input follows from others, and the metadata of the model's file cannot be read.
    """
    # Only open sizes have a default, which may take a preparation to find.
    is_open = not all(spec.info.is_fully_shaped for spec in model.inputs)
    defaults = model.default_shapes if is_open else [None] * len(model.inputs)

    def choose(said: Mapping[str, Sequence[int]]) -> InputShapes:
        return choose_shapes(
            model.inputs,
            defaults,
            said,
            lambda: dimension_names_of(model.metadata),
            batch=batch,
        )

    def fits(said: NamedShapes) -> bool:
        by_name = choose(said).by_name
        try:
            cache = model.handle.loaded.program_cache
        except ArmpyError:
            return True  # the model is closed, and nothing can be tried
        return cache.takes([by_name[spec.name] for spec in model.inputs])

    return replace(choose(shapes), fits=fits)


def name_example(model: Model, error: LayerValidationError) -> None:
    """Add shapes that a model takes to the fix of an error, if it is about those of a call."""
    if error.call_shapes:
        input_shapes(model, {}).name_example(error)


def dimension_names_of(metadata: ModelMetadata) -> dict[str, tuple[str, ...]]:
    """Names of the dimensions of a model's inputs, as the metadata of its file have them."""
    return {name: about.dimension_names for name, about in metadata.inputs.items()}


def prepare_for(
    model: Model, shapes: Mapping[str, Sequence[int]], batch: int | None = None
) -> None:
    """Prepare a model for the sizes that a command is given, and those that follow from them.

    Raises
    ------
    InvalidArgumentError
        If there is no such input, a shape does not fit, or nothing says a shape that is needed.
    """
    chosen = input_shapes(model, shapes, batch)
    if chosen.unknown and not shapes:
        raise InvalidArgumentError(
            "an input has no shape yet", where=f"input '{chosen.unknown[0].name}'", fix=chosen.fix
        )
    with chosen.explained():
        model.prepare(chosen.by_name)


def _sizes_by_dimension(
    dimension_names: Mapping[str, Sequence[str]], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """Sizes of named dimensions in some inputs' shapes, without names that have two sizes."""
    sizes: dict[str, set[int]] = {}
    for name, shape in shapes.items():
        # A shape of a wrong rank is refused where it is used.
        for dimension, size in zip(dimension_names.get(name, ()), shape, strict=False):
            if dimension:
                sizes.setdefault(dimension, set()).add(size)
    return {dimension: found.pop() for dimension, found in sizes.items() if len(found) == 1}


def _example_sizes(spec: TensorSpec) -> list[tuple[int, ...]]:
    """Return shapes of an input for examples, one row of a batch: usual sizes, doubled, halved."""
    dims = spec.shape or (None, None)
    shapes = (_completed(dims, size, size) for size in _usual_sizes(len(dims)))
    return list(dict.fromkeys(shapes))


def _usual_sizes(ndim: int) -> list[int]:
    """Return sizes to try for open dimensions of an input: a usual one, doubled, halved."""
    factors = [2.0**power for power in (*range(_MOST_DOUBLED + 1), *range(-1, -_MOST_HALVED, -1))]
    if ndim == _IMAGE_NDIM:
        return [int(_EXAMPLE_SIDE * f) for f in factors if f <= _LARGEST_IMAGE_FACTOR]
    return [int(_EXAMPLE_LENGTH * f) for f in factors]


def _neighbours(inputs: Sequence[TensorSpec], call: NamedShapes) -> Iterator[NamedShapes]:
    """Shapes of all inputs of a call with other sizes of one of them, the nearest first."""
    for spec in inputs:
        shape = call[spec.name]
        dims = spec.shape or (None,) * len(shape)
        first = 0 if len(dims) == 1 else 1  # after the batch
        opened = [place for place, dim in enumerate(dims) if dim is None]
        tries = [{place: 1 for place in opened if place < first}]
        for size in _usual_sizes(len(dims)):
            tries.append({place: size for place in opened if place >= first})
        changes = [
            {shape[place]: size for place, size in sizes.items() if shape[place] != size}
            for sizes in tries
        ]
        for change in sorted(filter(None, changes), key=_distance):
            yield {other.name: _changed(other, call[other.name], change) for other in inputs}


def _distance(change: Mapping[int, int]) -> float:
    """Return how often sizes are doubled or halved in all, halving before doubling."""
    return sum(abs(math.log2(max(new, 1) / max(old, 1)) + 1e-6) for old, new in change.items())


def _changed(
    spec: TensorSpec, shape: tuple[int, ...], change: Mapping[int, int]
) -> tuple[int, ...]:
    """Return a shape of an input with other open sizes."""
    dims = spec.shape or (None,) * len(shape)
    return tuple(
        change.get(size, size) if dim is None else size
        for dim, size in zip(dims, shape, strict=True)
    )


def _written(shapes: NamedShapes) -> str:
    """Write shapes as options of a command, or as an error names those of a call."""
    if argument_style():
        return f"with {argument('shapes', shapes)}"
    return ", ".join(f"'{name}' {format_shape(shape)}" for name, shape in shapes.items())


def _tried(spec: TensorSpec) -> str:
    """The first and the largest of these shapes."""
    shapes = _example_sizes(spec)
    return f"{format_shape(min(shapes))} to {format_shape(max(shapes))}"


def _completed(dims: Sequence[int | None], image_side: int, length: int) -> tuple[int, ...]:
    """Return sizes without open ones: the first becomes 1, those of images `image_side`."""
    other = image_side if len(dims) == _IMAGE_NDIM else length
    usual = (1, *[other] * (len(dims) - 1))
    return tuple(size if dim is None else dim for dim, size in zip(dims, usual, strict=False))
