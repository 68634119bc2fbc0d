"""Settings that an exported model carries from the machine that writes it to the server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from armpy.errors import InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.model.load import load
from armpy.model.model import Model

PARAMETER = "armpy"
"""Name of the parameter of ``config.pbtxt`` that has them, as JSON."""


@dataclass(frozen=True, slots=True)
class InstanceSettings:
    """Settings by which an instance loads its model.

    Parameters
    ----------
    file : str
        Name of the model's file, in the folder of the version.
    load_options : mapping of str to object
        Of `armpy.load`, by name.
    isolation : tuple of str
        Backends that get processes of their own.
    backend_options : mapping of str to (mapping of str to object)
        By backend.
    dynamic_backends_path : tuple of str
    sizes : tuple of int
        Numbers of rows that the model is prepared for, with a file for each; a batch is filled up
        to the next of them. Empty if batches stay as they are.
    """

    file: str
    load_options: Mapping[str, Any] = field(default_factory=dict)  # Any: as `armpy.load` has them
    isolation: tuple[str, ...] = ()
    backend_options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    dynamic_backends_path: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()

    def text(self) -> str:
        """The same as JSON, without what is left out."""
        return json.dumps({key: value for key, value in asdict(self).items() if value})

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> InstanceSettings:
        """Those of a model's configuration, as the server hands it over.

        Raises
        ------
        InvalidArgumentError
            If there are none, or some that this version does not know.
        """
        try:
            found = json.loads(config["parameters"][PARAMETER]["string_value"])
            lists = {key: tuple(value) for key, value in found.items() if isinstance(value, list)}
            return cls(**(found | lists))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"the parameter '{PARAMETER}' of config.pbtxt cannot be used: {error!r}",
                where=f"model '{config.get('name', '')}'",
                fix="Write it again: armpy export-triton",
            ) from error

    def file_of(self, size: int) -> str:
        """Name of the file for a number of rows; 0 if batches stay as they are."""
        stem, suffix = os.path.splitext(self.file)
        return f"{stem}.{size}{suffix}" if size else self.file

    def load(self, folder: str, size: int, num_threads: int) -> Model:
        """Load the model.

        Parameters
        ----------
        folder : str
            Of the version.
        size : int
            As for `file_of`.
        num_threads : int
            If the settings say nothing of it.
        """
        options = {"num_threads": num_threads, **self.load_options}
        path = os.path.join(folder, self.file_of(size))
        plain = not (self.isolation or self.backend_options or self.dynamic_backends_path)
        if plain:
            return load(path, **options)
        runtime = Runtime(
            RuntimeOptions(
                **options,
                isolation=dict.fromkeys(self.isolation, "process"),
                backend_options=self.backend_options,
                dynamic_backends_path=self.dynamic_backends_path,
            )
        )
        return load(path, runtime=runtime)


def threads_per_instance(config: Mapping[str, Any]) -> int:  # Any: JSON
    """The processor's cores, divided between all instances of a model; at least 1."""
    groups = config.get("instance_group") or [{}]
    count = sum(max(int(group.get("count", 1)), 1) for group in groups)
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, cores // max(count, 1))
