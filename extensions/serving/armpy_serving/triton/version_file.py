"""``armpy.json``: what a version of a model says of itself, in its own folder.

Notes
-----
``config.pbtxt`` is one for all versions, so each keeps its settings by itself, and what it was
exported with of the inputs, the outputs and the batch: versions that differ there cannot be served
side by side.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError

VERSION_FILE = "armpy.json"

_TENSOR_FIELDS = ("name", "data_type", "dims")


@dataclass(frozen=True, slots=True)
class VersionFile:
    """Contents of the file."""

    config: Mapping[str, Any]  # Any: JSON
    """Fields of the configuration that belong to the model, as `interface_of` has it."""
    settings: Mapping[str, Any]  # Any: JSON
    """Settings of the instances."""

    def write(self, folder: Path) -> None:
        """Write it to a version's folder."""
        (folder / VERSION_FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def of(cls, folder: str) -> VersionFile:
        """Read that of a version's folder.

        Raises
        ------
        InvalidArgumentError
            If there is none, or not as it was written.
        """
        path = os.path.join(folder, VERSION_FILE)
        try:
            with open(path, encoding="utf-8") as file:
                return cls(**json.load(file))
        except (OSError, TypeError, ValueError) as error:
            raise unusable(error, path) from error


def unusable(error: Exception, where: str) -> InvalidArgumentError:
    """The error for a version whose file cannot be used."""
    return InvalidArgumentError(
        f"{VERSION_FILE} cannot be read: {error!r}",
        where=where,
        fix="Write it again: armpy export-triton --force",
    )


def version_folder(args: Mapping[str, str]) -> str:
    """The folder of a version, from the server's arguments of an instance."""
    return os.path.join(args["model_repository"], args["model_version"])


def interface_of(config: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return the model's part of a configuration: its tensors, and the most rows of a batch."""
    tensors = {
        kind: [{name: tensor[name] for name in _TENSOR_FIELDS} for tensor in config[kind]]
        for kind in ("input", "output")
    }
    return {"max_batch_size": config["max_batch_size"], **tensors}


def check_alike(place: Path, version: int, config: Mapping[str, Any]) -> None:  # Any: JSON
    """Check that a new version of a model can be served beside those that are there.

    Parameters
    ----------
    place : Path
        The model's folder.
    config : mapping of str to object
        Configuration of the new one.

    Raises
    ------
    InvalidArgumentError
        If one of them has other inputs, outputs or batches.
    """
    asked = interface_of(config)
    for other in versions_in(place):
        if other == version or not (place / str(other) / VERSION_FILE).exists():
            continue
        served = VersionFile.of(str(place / str(other))).config
        if served != asked:
            raise InvalidArgumentError(
                f"version {other} has other inputs, outputs or batches, and one configuration is "
                "for all versions",
                where=str(place / str(version)),
                expected=_words(served),
                actual=_words(asked),
                fix="Export it as version "
                f"{other} did, or under another name; force lets version {other} "
                "fail to load",
            )


def versions_in(place: Path) -> list[int]:
    """Versions of a model that are there."""
    names = os.listdir(place) if place.is_dir() else []
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def _words(config: Mapping[str, Any]) -> str:  # Any: JSON
    """An interface in few words."""
    tensors = [
        f"{tensor['name']} {tensor['data_type']} {tensor['dims']}"
        for kind in ("input", "output")
        for tensor in config.get(kind, ())
    ]
    return ", ".join([f"max_batch_size {config.get('max_batch_size')}", *tensors])
