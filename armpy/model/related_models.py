"""Models that belong to another one: a file's signatures, and subsets of outputs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from armpy.errors import InvalidArgumentError, did_you_mean

if TYPE_CHECKING:
    from armpy.execution.runtime import Runtime

MOST_KEPT = 8
"""So many models with other outputs does a model keep."""

ModelT = TypeVar("ModelT", bound=Any)  # Any: `armpy.Model`, which has them


class Signatures(Generic[ModelT]):
    """Opens a file's signatures, each once, when they are first asked for."""

    def __init__(
        self,
        read_names: Callable[[], Sequence[str]] = tuple,
        open_model: Callable[[str, Signatures[ModelT], ModelT], ModelT] | None = None,
        first_name: str | None = None,
    ) -> None:
        # Returns the names, in the file's order; a model that is not a file has none.
        self._read_names = read_names
        # Makes the model for a name; called with these signatures and the file's first model.
        self._open_model = open_model
        # The signature that the first model is for; None if it is the main subgraph.
        self.first_name = first_name
        # The first model has these signatures: it is kept from when another one is asked for, so
        # that most models are freed with the last reference to them.
        self._first: ModelT | None = None
        self._others: dict[str, ModelT] = {}
        # Held while one is opened: two threads that ask for it get the same model.
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the file's order."""
        return tuple(self._read_names())

    def get(self, name: str, asked: ModelT) -> ModelT:
        """The model for a name, asked of a model of the same file that is open."""
        with self._lock:
            first = self._first = self._first or asked  # there are no others before the first asks
            if name == self.first_name:
                return first
            model = self._others.get(name)
            if model is None or model.is_closed:
                names = self.names
                if self._open_model is None or name not in names:
                    raise no_signature(name, names)
                model = self._others[name] = self._open_model(name, self, first)
            return model

    def close(self, model: object) -> None:
        """Close the models opened besides the first one, if that is closed."""
        if model is not self._first:
            return
        with self._lock:
            for other in self._others.values():
                other.close()
            self._others.clear()
            self._first = None


def no_signature(name: str, names: Sequence[str]) -> InvalidArgumentError:
    """The error for a signature that a model does not have."""
    return InvalidArgumentError(
        f"the model has no signature '{name}'",
        expected=", ".join(f"'{known}'" for known in names) or "none, as it has no signatures",
        fix=did_you_mean(name, names, "Choose one of model.signatures, or none"),
    )


class OutputSubsets(Generic[ModelT]):
    """Models with other outputs than one model's, the least lately used forgotten first.

    One that is forgotten may be running: it is unloaded with the last reference to it.
    """

    def __init__(self) -> None:
        # Held while one is made: two threads that ask for the same outputs share a model.
        self._lock = threading.Lock()
        self._kept: dict[Hashable, ModelT] = {}  # the last used at the end

    def get(self, key: Hashable, make: Callable[[], ModelT]) -> ModelT:
        """The model of a key, made if there is none."""
        with self._lock:
            model = self._kept.pop(key, None)
            if model is None or model.is_closed:
                model = make()
                # Not at exit: by then backends may be gone, and the process gives all back.
                weakref.finalize(model, _unload, model.runtime, model.network_id).atexit = False
            self._kept[key] = model
            while len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            return model

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            for model in self._kept.values():
                model.close()
            self._kept.clear()


def _unload(runtime: Runtime, network_id: int) -> None:
    """Unload a network, unless that has been done."""
    try:
        runtime.unload_network(network_id)
    except InvalidArgumentError:
        return  # it was closed, or the runtime was
