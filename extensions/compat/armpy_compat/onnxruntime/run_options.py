"""Options of one call, which can end calls that are under way."""

from __future__ import annotations

from typing import Any

from armpy.backend import Cancellation
from armpy_compat.onnxruntime.attributes import Attribute, check_key
from armpy_compat.onnxruntime.errors import NotImplemented, status_error
from armpy_compat.signatures import checked


class RunOptions:
    """Options of one or more calls.

    Attributes
    ----------
    cancellation : Cancellation
        Object that ends calls when `terminate` is set.

    Notes
    -----
    armpy takes `terminate` and `only_execute_path_to_fetches`.
    """

    __slots__ = ("cancellation", "config_entries", "values_by_name")

    log_severity_level = Attribute(-1)
    log_verbosity_level = Attribute(0)
    logid = Attribute("")
    only_execute_path_to_fetches = Attribute(False)

    def __init__(self) -> None:
        self.values_by_name: dict[str, Any] = {}  # Any: a value of each attribute's own type
        self.config_entries: dict[str, str] = {}
        self.cancellation = Cancellation()

    @property
    def terminate(self) -> bool:
        """Flag that ends calls with these options, also those under way."""
        return self.cancellation.is_cancelled

    @terminate.setter
    @checked
    def terminate(self, is_terminated: bool) -> None:
        if is_terminated:
            self.cancellation.cancel()
        else:
            self.cancellation = Cancellation()  # one stays cancelled

    @checked
    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set an entry of the call's configuration.

        Raises
        ------
        RuntimeError
            If the key is empty or longer than 1024.
        """
        check_key(key)
        self.config_entries[key] = value

    @checked
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
