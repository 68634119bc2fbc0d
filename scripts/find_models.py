"""Finds models and data in folders and installed packages, and makes samples of them.

Usage::

    python scripts/find_models.py PLACE... [--samples DIR] [--most N]

A place is a folder, or the name of an installed distribution. Lists ``.tflite`` and ``.onnx``
files, and counts pictures and arrays (``.npy``). With ``--samples``, copies to DIR each model with
one input that takes pictures or arrays that were found, and writes ``<model>.npz`` beside it; then
``armpy conformance accuracy DIR --backend ID`` runs them. Pictures need Pillow.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import armpy
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.ops.operation import Array

MODELS = (".tflite", ".onnx")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp")
ARRAYS = (".npy",)


@dataclass(frozen=True)
class Found:
    """Files of some places, in order of their paths."""

    models: tuple[Path, ...]
    pictures: tuple[Path, ...]
    arrays: tuple[Path, ...]


def files_of(place: str) -> list[Path]:
    """Files in a folder, or of an installed distribution.

    Raises
    ------
    InvalidArgumentError
        If it is neither.
    """
    if Path(place).is_dir():
        return sorted(path for path in Path(place).rglob("*") if path.is_file())
    try:
        files = distribution(place).files or []
    except (PackageNotFoundError, ValueError) as error:
        raise InvalidArgumentError(
            "the place is not known",
            where=place,
            expected="a folder, or the name of an installed distribution",
        ) from error
    paths = (Path(str(file.locate())) for file in files)
    return sorted(path for path in paths if path.is_file())


def find(places: Sequence[str]) -> Found:
    """Models and data of all places, each file once."""
    files = list(dict.fromkeys(path for place in places for path in files_of(place)))
    models, pictures, arrays = (
        tuple(path for path in files if path.suffix.lower() in suffixes)
        for suffixes in (MODELS, PICTURES, ARRAYS)
    )
    return Found(models, pictures, arrays)


def inputs_for(model: armpy.Model, found: Found) -> Iterator[Array]:
    """Arrays for the only input of a model: pictures if it takes them, or arrays that fit.

    Pictures are resized to the input. Files that cannot be read as such are passed over.
    """
    if len(model.inputs) != 1:
        return
    (spec,) = model.inputs
    shape = model.default_shapes[0] or spec.shape or ()
    for path in found.arrays:
        try:
            array = np.load(path, allow_pickle=False)
        except (ValueError, EOFError):  # damaged, or Python's objects
            continue
        if array.shape == shape and array.dtype == spec.data_type.dtype:
            yield array
    if len(shape) == 4:
        yield from _pictures(spec.name, spec.info, found.pictures)


def _pictures(name: str, info: armpy.TensorInfo, paths: Sequence[Path]) -> Iterator[Array]:
    """Pictures as an input of that info; none where it is no picture."""
    from armpy.cli.pictures.images import image_input, open_image  # noqa: PLC0415 - needs Pillow

    for path in paths:
        try:
            yield image_input(open_image(str(path)), name, info)[0]
        except ArmpyError:  # not a picture, or the input takes none
            continue


def write_samples(found: Found, folder: Path, most: int) -> list[str]:
    """Copy models that have inputs to a folder, with their samples; a line on each model."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for path in found.models:
        target = folder / path.name
        if target.exists():
            lines.append(f"{path}: not copied, as {target} exists")
            continue
        try:
            with armpy.load(path, backends=["CpuRef"]) as model:
                arrays = list(islice(inputs_for(model, found), most))
        except ArmpyError as error:
            lines.append(f"{path}: {error}")
            continue
        if not arrays:
            lines.append(f"{path}: nothing that was found fits its inputs")
            continue
        shutil.copy(path, target)
        samples: Any = {f"{number}/in0": array for number, array in enumerate(arrays)}
        np.savez(target.with_suffix(".npz"), **samples)
        lines.append(f"{path}: {len(arrays)} samples")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """List what is found, and make samples if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("places", nargs="+", metavar="PLACE")
    parser.add_argument("--samples", type=Path, metavar="DIR", help="where models and samples go")
    parser.add_argument("--most", type=int, default=20, help="samples of each model (20)")
    given = parser.parse_args(arguments)
    try:
        found = find(given.places)
    except InvalidArgumentError as error:
        parser.error(str(error))
    for path in found.models:
        print(f"{path}  {path.stat().st_size:,} bytes")
    print(f"{len(found.models)} models, {len(found.pictures)} pictures, {len(found.arrays)} arrays")
    if given.samples is not None:
        print(*write_samples(found, given.samples, given.most), sep="\n")
    return 0 if found.models else 1


if __name__ == "__main__":
    raise SystemExit(main())
