"""Options of one call, which can end calls that are under way."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, TypeVar

from armpy.errors import ExecutionCancelledError
from armpy_compat.onnxruntime.attributes import Attribute
from armpy_compat.onnxruntime.errors import Fail, NotImplemented, status_error

T = TypeVar("T")


class RunOptions:
    """Options of one or more calls.

    Notes
    -----
    armpy takes `terminate` and `only_execute_path_to_fetches`.
    """

    __slots__ = ("_is_terminated", "_running", "config_entries", "values_by_name")

    log_severity_level = Attribute(-1)
    log_verbosity_level = Attribute(0)
    logid = Attribute("")
    only_execute_path_to_fetches = Attribute(False)

    def __init__(self) -> None:
        self.values_by_name: dict[str, Any] = {}  # Any: a value of each attribute's own type
        self.config_entries: dict[str, str] = {}
        self._is_terminated = False
        self._running: set[Future[Any]] = set()

    @property
    def terminate(self) -> bool:
        """Flag that ends calls with these options, also those under way."""
        return self._is_terminated

    @terminate.setter
    def terminate(self, is_terminated: bool) -> None:
        self._is_terminated = bool(is_terminated)
        if self._is_terminated:
            for future in self._running.copy():
                future.cancel()

    def check_terminate(self) -> None:
        """Check that calls may begin.

        Raises
        ------
        Fail
            If `terminate` is set.
        """
        if self._is_terminated:
            raise status_error(Fail, _TERMINATED)

    def result(self, future: Future[T]) -> T:
        """Wait for a call, which `terminate` ends.

        Raises
        ------
        Fail
            If it was ended; else what the call raises.
        """
        self._running.add(future)
        try:
            if self._is_terminated:
                future.cancel()
            return future.result()
        except ExecutionCancelledError as error:
            raise status_error(Fail, _TERMINATED) from error
        finally:
            self._running.discard(future)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set an entry of the call's configuration."""
        self.config_entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """Return an entry of the call's configuration.

        Raises
        ------
        RuntimeError
            If there is no such entry.
        """
        if key not in self.config_entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self.config_entries[key]

    def add_active_adapter(self, adapter: object) -> None:
        """Raise `NotImplemented`: armpy loads no adapters.

        Raises
        ------
        NotImplemented
            Always.
        """
        raise status_error(
            NotImplemented, "armpy has no LoRA adapters: give their parameters as inputs"
        )


_TERMINATED = "Exiting due to terminate flag being set to true."
