"""Options of a session; those that mean nothing to armpy are kept and can be read."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from armpy_compat.onnxruntime.attributes import Attribute, check_key
from armpy_compat.onnxruntime.element_types import numpy_type
from armpy_compat.onnxruntime.enumerations import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
)
from armpy_compat.onnxruntime.errors import Fail, status_error
from armpy_compat.onnxruntime.ort_value import OrtValue
from armpy_compat.signatures import checked


class SessionOptions:
    """Options of a session.

    Notes
    -----
    armpy takes `intra_op_num_threads`, `enable_profiling`, `profile_file_prefix`,
    `optimized_model_filepath`, overridden dimensions, initializers, providers, and the entry
    ``session.disable_cpu_ep_fallback``.
    """

    __slots__ = (
        "config_entries",
        "dimensions_by_denotation",
        "dimensions_by_name",
        "external_files",
        "initializers",
        "providers",
        "values_by_name",
    )

    enable_cpu_mem_arena = Attribute(True)
    enable_mem_pattern = Attribute(True)
    enable_mem_reuse = Attribute(True)
    enable_profiling = Attribute(False)
    execution_mode = Attribute(ExecutionMode.ORT_SEQUENTIAL)
    execution_order = Attribute(ExecutionOrder.DEFAULT)
    graph_optimization_level = Attribute(GraphOptimizationLevel.ORT_ENABLE_ALL)
    inter_op_num_threads = Attribute(0)
    intra_op_num_threads = Attribute(0)
    log_severity_level = Attribute(-1)
    log_verbosity_level = Attribute(0)
    logid = Attribute("")
    optimized_model_filepath = Attribute("")
    profile_file_prefix = Attribute("onnxruntime_profile_")
    use_deterministic_compute = Attribute(False)
    use_per_session_threads = Attribute(True)

    def __init__(self) -> None:
        self.values_by_name: dict[str, Any] = {}  # Any: a value of each attribute's own type
        self.config_entries: dict[str, str] = {}
        self.dimensions_by_name: dict[str, int] = {}
        self.dimensions_by_denotation: dict[str, int] = {}
        self.initializers: dict[str, OrtValue] = {}
        self.external_files: dict[str, bytes] = {}  # contents by name
        self.providers: list[tuple[str, dict[str, str]]] = []

    @checked
    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set an entry of the session's configuration.

        Raises
        ------
        TypeError
            If key or value is not a text.
        RuntimeError
            If the key is empty or longer than 1024.
        """
        check_key(key)
        self.config_entries[key] = value

    @checked
    def get_session_config_entry(self, key: str) -> str:
        """Return an entry of the session's configuration.

        Raises
        ------
        RuntimeError
            If there is no such entry.
        """
        if key not in self.config_entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self.config_entries[key]

    @checked
    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Set the size of the open dimensions of inputs that have a name; TypeError if no size."""
        self.dimensions_by_name[name] = operator.index(size)

    @checked
    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Set the size of the open dimensions of inputs that have a denotation; as by name."""
        self.dimensions_by_denotation[denotation] = operator.index(size)

    @checked
    def add_initializer(self, name: str, value: object) -> None:
        """Put a tensor in place of an initializer of the model.

        Raises
        ------
        RuntimeError
            If the value is not an OrtValue.
        """
        if not isinstance(value, OrtValue):
            raise RuntimeError(  # noqa: TRY004 - its kind there
                f"the initializer '{name}' is not an OrtValue: {type(value).__name__}"
            )
        self.initializers[name] = value

    @checked
    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Put tensors in place of initializers whose elements lie in other files.

        Raises
        ------
        RuntimeError
            If there is not one value for each name.
        """
        if len(names) != len(values):
            raise RuntimeError("Expecting names and OrtValue list to have equal length")
        self.initializers.update(zip(names, values, strict=True))

    @checked
    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[bytes], lengths: Sequence[int]
    ) -> None:
        """Take the contents of files that the model names for its external data.

        Parameters
        ----------
        names : sequence of str
            File names as the model's tensors state them (``location``).
        buffers : sequence of bytes
            The contents of each.
        lengths : sequence of int
            Number of bytes of each that count.

        Raises
        ------
        RuntimeError
            If there is not one buffer and one length for each name.
        """
        if not len(names) == len(buffers) == len(lengths):
            raise RuntimeError("Expecting names, buffers and lengths lists to have equal length")
        for name, buffer, length in zip(names, buffers, lengths, strict=True):
            self.external_files[name] = bytes(memoryview(buffer)[:length])

    @checked
    def register_custom_ops_library(self, library_path: str) -> None:
        """Raise `Fail`: armpy cannot load operators that are compiled for ONNX Runtime.

        Raises
        ------
        Fail
            Always.
        """
        raise status_error(
            Fail,
            f"Failed to load library {library_path} with error: armpy has no custom operators of"
            " ONNX Runtime's libraries. Write a plugin; see docs/how_to/write_a_plugin.md.",
        )

    @checked
    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Add an execution provider, for sessions that are given none."""
        self.providers.append((name, dict(options)))

    def has_providers(self) -> bool:
        """Return whether providers have been added."""
        return bool(self.providers)

    def set_provider_selection_policy(self, policy: object) -> None:
        """Accept a policy; armpy selects devices by ``preference`` of `armpy.load`."""
        self.values_by_name["provider_selection_policy"] = policy

    def set_provider_selection_policy_delegate(self, delegate: Callable[..., Any]) -> None:
        """Accept a function; it is not called."""
        self.values_by_name["provider_selection_policy_delegate"] = delegate

    def set_load_cancellation_flag(self, is_cancelled: bool) -> None:
        """Accept a flag; loading is not cancelled."""
        self.values_by_name["load_cancellation_flag"] = is_cancelled

    @property
    def initializer_arrays(self) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
        """Arrays in place of initializers, by name."""
        return {
            name: np.asarray(value.numpy(), numpy_type(value.element_type()))
            for name, value in self.initializers.items()
        }
