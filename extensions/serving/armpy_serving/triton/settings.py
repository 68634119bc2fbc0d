"""Settings that an exported model carries from the machine that writes it to the server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any

from armpy import IsolationLimits, Model, load
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import LoadOptions
from armpy_serving.protocol import datatype_of
from armpy_serving.triton.config import triton_type
from armpy_serving.triton.version_file import VersionFile, unusable


@dataclass(frozen=True, slots=True)
class InstanceSettings:
    """Settings by which an instance loads its model."""

    file: str  # name of the model's file, in the folder of the version
    load_options: Mapping[str, Any] = field(default_factory=dict)  # Any: as `armpy.load` has them
    """Options of `armpy.load`, by name."""
    isolation: tuple[str, ...] = ()  # backends that get processes of their own
    backend_options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # by backend
    dynamic_backends_path: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    """Numbers of rows that the model is prepared for, with a file for each; a batch is filled up to
    the next of them. Empty if batches stay as they are.
    """
    isolation_memory_bytes: int | None = None
    """The most that the process of an isolated backend may have; None as for `IsolationLimits`."""

    def document(self) -> dict[str, object]:
        """The same for JSON, without unset values."""
        return {key: value for key, value in asdict(self).items() if value}

    @classmethod
    def of(cls, folder: str) -> InstanceSettings:
        """Settings of a version, from its folder.

        Raises
        ------
        InvalidArgumentError
            If there are none, or some that this version of armpy does not know.
        """
        settings = VersionFile.of(folder).settings
        try:
            fields: dict[str, Any] = {  # Any: as JSON holds them
                key: tuple(value) if isinstance(value, list) else value
                for key, value in settings.items()
            }
            return cls(**fields)
        except (AttributeError, TypeError) as error:
            raise unusable(error, folder) from error

    def file_of(self, size: int) -> str:
        """Name of the file for a number of rows; 0 if batches stay as they are."""
        stem, suffix = os.path.splitext(self.file)
        return f"{stem}.{size}{suffix}" if size else self.file

    def load(self, folder: str, size: int, num_threads: int) -> Model:
        """Load the model.

        Parameters
        ----------
        folder : str
            Folder of the version.
        size : int
            Size as for `file_of`.
        num_threads : int
            If the settings say nothing of it.
        """
        load_options = {"num_threads": num_threads, **self.load_options}
        if self.isolation:
            load_options["isolation"] = dict.fromkeys(self.isolation, "process")
        options = LoadOptions(**load_options)
        path = os.path.join(folder, self.file_of(size))
        limits = IsolationLimits(memory_bytes=self.isolation_memory_bytes)
        if not (self.backend_options or self.dynamic_backends_path or limits != IsolationLimits()):
            return load(path, **options.given())
        runtime = Runtime(
            RuntimeOptions(
                **options.values_for_runtime(),
                backend_options=self.backend_options,
                dynamic_backends_path=self.dynamic_backends_path,
                isolation_limits=limits,
            )
        )
        return load(path, **options.on(runtime).given())


def check_config(config: Mapping[str, Any], model: Model, folder: str) -> None:  # Any: JSON
    """Check that a configuration is that of a version's model.

    Raises
    ------
    InvalidArgumentError
        If names or types of inputs or outputs differ, or batches are larger than those prepared
        for, or none at all where they are.
    """
    most = int(VersionFile.of(folder).config.get("max_batch_size", 0))
    asked = int(config.get("max_batch_size", 0))
    # Fewer rows will do.
    rows = asked if asked > most or not asked else most
    configured, expected = [f"max_batch_size {rows}"], [f"max_batch_size {most}"]
    for kind, specs in (("input", model.inputs), ("output", model.outputs)):
        configured += sorted(f"{kind} {t['name']} {t['data_type']}" for t in config.get(kind, ()))
        expected += sorted(
            f"{kind} {s.name} {triton_type(datatype_of(s.data_type))}" for s in specs
        )
    if configured != expected:
        raise InvalidArgumentError(
            "config.pbtxt is not the model's",
            where=folder,
            expected=", ".join(expected),
            actual=", ".join(configured),
            fix="Export this version again: armpy export-triton --force",
        )


def threads_per_instance(config: Mapping[str, Any]) -> int:  # Any: JSON
    """The processor's cores, divided between all instances of a model; at least 1."""
    groups = config.get("instance_group") or [{}]
    count = sum(max(int(group.get("count", 1)), 1) for group in groups)
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, cores // max(count, 1))
