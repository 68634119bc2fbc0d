"""A backend that uses the whole contract and writes down which of its methods are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from armpy.backend import ILayerSupport
from tests.support.sabotage import CONTRACT, FullBackend, members

T = TypeVar("T")


class Recorder:
    """Makes classes whose methods are written down, in the place of a `Sabotage`.

    `calls`: ``Interface.method``, in the order of calls; those that the core makes, not the
    backend.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._depth = 0

    def of(self, right: type[T]) -> type[T]:
        """A class that does the same and writes its calls down."""
        methods: dict[str, Any] = {}  # Any: a class's namespace
        for interface in CONTRACT:
            if issubclass(right, interface):
                for name in members(interface):
                    member = inspect.getattr_static(right, name)
                    # The core does not call these defaults, but would those of a class of its own.
                    is_default = member in (
                        ILayerSupport.is_layer_supported_in,
                        ILayerSupport.are_layers_supported,
                    )
                    if inspect.isfunction(member) and not is_default:
                        methods[name] = self._written(f"{interface.__name__}.{name}", member)
        return type(right.__name__, (right,), methods)

    def _written(self, title: str, method: Callable[..., object]) -> Callable[..., object]:
        """A method that writes down that it is called, unless one of the backend's calls it."""

        def call(this: object, *args: object, **kwargs: object) -> object:
            if not self._depth:
                self.calls.append(title)
            self._depth += 1
            try:
                return method(this, *args, **kwargs)
            finally:
                self._depth -= 1

        return call

    def take(self) -> list[str]:
        """The calls since the last time."""
        calls, self.calls = self.calls, []
        return calls


def recording_backend(recorder: Recorder) -> FullBackend:
    """The backend whose calls are written down."""
    attributes: dict[str, Any] = {"sabotage": recorder}  # Any: a class's namespace
    backend: FullBackend = type("FullBackend", (recorder.of(FullBackend),), attributes)()
    return backend
