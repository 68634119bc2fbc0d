"""A loaded subject as a benchmark sees it, whichever engine runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from armpy_tools.benchmark.subjects import Subject


class ISubjectModel(ABC):
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
        """Make inputs of the subject's shapes, after `fit_shapes`.

        Raises
        ------
        ArmpyError
            If the model does not take them.
        """

    def first_caller(self) -> Callable[[], object]:
        """Run it for the first time, as an application does after loading."""
        return self.caller()

    @abstractmethod
    def caller(self) -> Callable[[], object]:
        """Make a call that runs the model once, for one thread, with its own bound arrays."""

    @property
    @abstractmethod
    def items(self) -> int:
        """Items of the batch of one run."""

    @abstractmethod
    def placement(self) -> str:
        """Return the shares of backends."""

    def memory(self) -> tuple[int | None, int | None]:
        """Bytes of weights, and of working memory for one execution; None if not known."""
        return None, None


def items_of(subject: Subject, shapes: Sequence[Sequence[int]]) -> int:
    """Return how many items one run computes: the batch that was chosen, else one."""
    if subject.batch is not None:
        return subject.batch
    sizes = {shape[0] for shape in shapes if len(shape) > 1}
    return sizes.pop() if subject.shapes and len(sizes) == 1 else 1
