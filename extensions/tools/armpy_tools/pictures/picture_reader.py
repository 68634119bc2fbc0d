"""Pictures made into inputs, several at a time, and handed on in their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field, replace
from typing import TypeVar

from armpy.cli.pictures.image_layout import MODES
from armpy.cli.pictures.images import image_input, open_image
from armpy.cli.pictures.normalization import Normalization
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.ops.operation import Array
from armpy_tools.pictures.detections import Frame

_MOST_THREADS = 8
"""Beyond them, threads wait for Python's lock, and each takes memory for a run of its own."""

Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class InputPicture:
    """A picture as the model takes it.

    Parameters
    ----------
    file : str
    elements : ndarray or None
        Shape of the input with one row; None if there is an error.
    frame : Frame
        The model's input made from it.
    hint, error : str
    outputs : mapping of str to ndarray, optional
        The model's outputs for it, where the thread that has read it has run it as well.
    """

    file: str
    elements: Array | None = None
    frame: Frame = field(default_factory=Frame)
    hint: str = ""
    error: str = ""
    outputs: Mapping[str, Array] | None = None


def read_picture(
    path: str,
    spec: TensorSpec,
    size: tuple[int, int] | None,
    resize: str,
    normalization: Normalization | None,
) -> InputPicture:
    """Read a picture for an input; an unreadable file gives one with an error.

    `size` is its height and width where the input leaves them open, `resize` how it gets there.

    Raises
    ------
    InvalidArgumentError
        If the input is not an image, or an option does not go with it.
    """
    try:
        image = open_image(path)
    except InvalidArgumentError as error:
        return InputPicture(path, error=error.failed)
    single = input_of_one(spec)
    elements, hint = image_input(
        image, spec.name, single.info, size=size, resize=resize, normalization=normalization
    )
    frame = Frame.of(image.size, shown_size(elements), resize)
    return InputPicture(path, elements, frame, hint)


def input_of_one(spec: TensorSpec) -> TensorSpec:
    """An input as it would be for one picture."""
    if not spec.shape or spec.shape[0] is None:
        return spec
    return TensorSpec(spec.name, replace(spec.info, shape=(1, *spec.shape[1:])))


def num_readers(num_threads: int | None) -> int:
    """Return how many threads read pictures.

    Parameters
    ----------
    num_threads : int, optional
        As the user limits them; otherwise there is one for each processor that may be used.
    """
    allowed = getattr(os, "sched_getaffinity", None)
    cores = len(allowed(0)) if allowed else os.cpu_count() or 1
    return min(num_threads or _MOST_THREADS, cores, _MOST_THREADS)


def in_order(
    make: Callable[[Item], Made], items: Iterable[Item], num_threads: int, ahead: int
) -> Generator[Made, None, None]:
    """Make something of each item on several threads; it comes in the order of the items.

    Parameters
    ----------
    make : callable
        Its errors are raised when the item's turn has come.
    items : iterable
    num_threads : int
    ahead : int
        Most results that wait to be taken: memory does not grow with the number of items.
    """
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(num_threads, "armpy-pictures") as threads:
        try:
            for item in items:
                waiting.append(threads.submit(make, item))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def shown_size(elements: Array) -> tuple[int, int]:
    """Width and height of an image input's elements."""
    shape = elements.shape[1:]
    is_first = len(shape) == 3 and shape[-1] not in MODES
    height, width = shape[1:] if is_first else shape[:2]
    return width, height
