"""The models of one file's signatures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from armpy.errors import InvalidArgumentError

if TYPE_CHECKING:
    from armpy.model.closable import Closable

ModelT = TypeVar("ModelT", bound="Closable")


class Signatures(Generic[ModelT]):
    """Opens a file's signatures, each once, when they are first asked for.

    Parameters
    ----------
    read_names : callable, optional
        Returns the names; a model that is no file has none.
    open_model : callable, optional
        Makes the model for a name; it is told these signatures and the file's first model.
    first_name : str, optional
        The signature that the first model is for.
    """

    def __init__(
        self,
        read_names: Callable[[], Sequence[str]] = tuple,
        open_model: Callable[[str, Signatures[ModelT], ModelT], ModelT] | None = None,
        first_name: str | None = None,
    ) -> None:
        self._read_names = read_names
        self._open_model = open_model
        self._first_name = first_name
        # The first model has these signatures: it is kept from when another one is asked for, so
        # that most models are freed with the last reference to them.
        self._first: ModelT | None = None
        self._others: dict[str, ModelT] = {}
        # Held while one is opened: two threads that ask for it get the same model.
        self._lock = threading.Lock()

    @property
    def first_name(self) -> str | None:
        """The signature that the first model is for; None if it is the main subgraph."""
        return self._first_name

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the file's order."""
        return tuple(self._read_names())

    def get(self, name: str, asked: ModelT) -> ModelT:
        """The model for a name.

        Parameters
        ----------
        name : str
        asked : Model
            One of this file's, which is open.

        Raises
        ------
        InvalidArgumentError
            If there is no such signature.
        """
        with self._lock:
            first = self._first = self._first or asked  # there are no others before the first asks
            if name == self._first_name:
                return first
            found = self._others.get(name)
            if found is None or found.is_closed:
                found = self._others[name] = self._open(name, first)
            return found

    def _open(self, name: str, first: ModelT) -> ModelT:
        """Make the model for a name."""
        names = self.names
        if self._open_model is None or name not in names:
            raise InvalidArgumentError(
                f"the model has no signature '{name}'",
                expected=", ".join(f"'{known}'" for known in names)
                or "none, as it has no signatures",
            )
        return self._open_model(name, self, first)

    def close(self, model: object) -> None:
        """Close what was opened besides the first model, if that is the one that is closed."""
        if model is not self._first:
            return
        with self._lock:
            for other in self._others.values():
                other.close()
            self._others.clear()
            self._first = None
