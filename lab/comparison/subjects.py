"""Makes what two source trees are compared on: models, networks and inputs, once for both.

A process of the old tree writes them to a file, so that a generator that gives something else in
the new tree is not taken for another answer.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # Any: of every type

KINDS = ("models", "vectors", "random", "kit", "instances")
FAMILIES = ("coral", "keras", "micro", "mlperf_tiny")
"""Folders of the models that are measured unless others are named."""

_OPEN_SIZE = 8
"""For dimensions that a model leaves to its caller, where no golden input says one."""


@dataclass(frozen=True)
class Selection:
    """Which subjects there are to be.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    count : int
        Of random networks.
    seed : int
        Of the first one.
    every : int
        Only every so many-th.
    filter : str
        Part of every name.
    shared : str
        Folder with ``models``, ``golden`` and ``nnapi_cts``.
    models : sequence of str
        Files or folders to take instead of the folder ``models``.
    """

    kind: str
    count: int
    seed: int
    every: int
    filter: str
    shared: str
    models: Sequence[str] = ()

    def to_json(self) -> str:
        """As one argument of a command."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Selection:
        """The opposite of `to_json`."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class ModelFile:
    """A model file, and inputs in order of each call."""

    name: str
    path: str
    calls: tuple[tuple[Array, ...], ...]


@dataclass(frozen=True)
class BuiltNetwork:
    """An `armpy.graph.Graph`, and inputs by name of each call."""

    name: str
    graph: Any  # Any: of the tree that runs it
    calls: tuple[dict[str, Array], ...]


@dataclass(frozen=True)
class NnapiModel:
    """A finished NNAPI model, and inputs in order, None if omitted."""

    name: str
    description: Any  # Any: of the tree that runs it
    inputs: tuple[Array | None, ...]


Subject = ModelFile | BuiltNetwork | NnapiModel


def measured_models(options: argparse.Namespace) -> list[Path]:
    """The files that the command line names, or those of `FAMILIES`."""
    below = options.shared.resolve() / "models"
    shared = [path for family in FAMILIES for path in sorted((below / family).glob("*.tflite"))]
    return list(options.models) or shared


def subjects(selection: Selection) -> Iterator[Subject]:
    """Every subject of a selection."""
    makers: dict[str, Callable[[Selection], Iterator[Subject]]] = {
        "models": _models,
        "vectors": _vectors,
        "random": _random,
        "kit": _kit,
        "instances": _instances,
    }
    chosen = (
        subject for subject in makers[selection.kind](selection) if selection.filter in subject.name
    )
    yield from (subject for number, subject in enumerate(chosen) if number % selection.every == 0)


def _models(selection: Selection) -> Iterator[ModelFile]:
    """Every model file, with its golden inputs and random ones."""
    for folder in selection.models or [str(Path(selection.shared, "models"))]:
        yield from _models_below(Path(folder), selection)


def _models_below(folder: Path, selection: Selection) -> Iterator[ModelFile]:
    """Every model file of a folder, or one file, as `_models`."""
    shared = Path(selection.shared)
    for path in sorted(folder.rglob("*.tflite")) or [folder]:
        name = f"models/{path.parent.name}/{path.stem}"
        if selection.filter not in name:
            continue
        golden = _golden_inputs(shared / "golden" / f"{path.parent.name}__{path.stem}.npz")
        yield ModelFile(name, str(path), (*golden, *_random_inputs(path, golden)))


def _golden_inputs(path: Path) -> list[tuple[Array, ...]]:
    """The inputs of each case of a golden file; none without the file."""
    if not path.exists():
        return []
    with np.load(path) as data:
        arrays = {key: data[key] for key in data.files if "/in" in key}
    cases = sorted({key.partition("/")[0] for key in arrays})
    return [
        tuple(arrays[key] for key in sorted(arrays) if key.startswith(f"{case}/in"))
        for case in cases
    ]


def _random_inputs(path: Path, golden: list[tuple[Array, ...]]) -> list[tuple[Array, ...]]:
    """One set of random inputs of a model; none if this tree cannot read it."""
    import armpy  # noqa: PLC0415 - the tree's own
    from armpy.errors import ArmpyError  # noqa: PLC0415

    try:
        model = armpy.load(path, backends=["CpuRef"])
    except ArmpyError:
        return []
    random = np.random.default_rng(zlib.crc32(path.name.encode()))
    arrays = []
    for index, spec in enumerate(model.inputs):
        shape = spec.shape
        if shape is None or None in shape:
            shape = golden[0][index].shape if golden else _chosen(shape or (1,))
        arrays.append(_elements(random, spec.data_type, tuple(dim or 1 for dim in shape)))
    model.close()
    return [tuple(arrays)]


def _chosen(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    """Dimensions for a shape that leaves some open: a batch of 1."""
    return tuple(dim or (_OPEN_SIZE if axis else 1) for axis, dim in enumerate(shape))


def _elements(random: np.random.Generator, data_type: Any, shape: tuple[int, ...]) -> Array:
    """Reals in [-1, 1), all stored integers of quantised types; other integers are 0 or 1."""
    if data_type.is_float:
        return np.asarray(random.uniform(-1, 1, shape)).astype(data_type.dtype)
    low, high = data_type.integer_range if data_type.is_quantized else (0, 1)
    return np.asarray(random.integers(low, high, shape, endpoint=True)).astype(data_type.dtype)


def _vectors(selection: Selection) -> Iterator[NnapiModel]:
    """NNAPI's published examples, as declared and with unknown dimensions of the outputs."""
    from armpy_nnapi.conformance.vectors.example import read_examples  # noqa: PLC0415 - the tree's own

    for example in read_examples(Path(selection.shared) / "nnapi_cts"):
        name = f"vectors/{example.file.partition('.')[0]}/{example.name}"
        yield NnapiModel(name, example.model, example.inputs)
        unknown = example.with_unknown_outputs().model
        yield NnapiModel(f"{name}, unknown outputs", unknown, example.inputs)


def _random(selection: Selection) -> Iterator[NnapiModel]:
    """Networks that are made up."""
    from armpy_nnapi.conformance.random_graphs.generator import random_model  # noqa: PLC0415

    for seed in range(selection.seed, selection.seed + selection.count):
        model = random_model(seed)
        yield NnapiModel(f"random/{seed}", model.description, model.inputs)


def _kit(selection: Selection) -> Iterator[BuiltNetwork]:
    """The networks of the conformance kit: of operations, and patterns."""
    from armpy_conformance.cases import operation_cases  # noqa: PLC0415 - the tree's own
    from armpy_conformance.cases.patterns import kit_patterns  # noqa: PLC0415

    for case in operation_cases():
        feeds = case.feeds()
        yield BuiltNetwork(f"kit/{case.id}", case.graph(), (feeds, _reversed(feeds)))
    for pattern in kit_patterns():
        feeds = pattern.feeds()
        yield BuiltNetwork(f"kit/pattern/{pattern.name}", pattern.graph, (feeds, _reversed(feeds)))


def _instances(selection: Selection) -> Iterator[BuiltNetwork]:
    """The kit's layers of each kind and type, with sizes, attributes and scales drawn by chance."""
    from armpy_conformance.cases import all_case_templates  # noqa: PLC0415 - the tree's own
    from armpy_conformance.sampling.case_sampling import drawn, roots  # noqa: PLC0415

    for template in roots(all_case_templates()):
        for case in drawn(template, selection.seed).cases(selection.seed):
            yield BuiltNetwork(f"instances/{case.id}", case.graph(), (case.feeds(),))


def _reversed(feeds: dict[str, Array]) -> dict[str, Array]:
    """The same elements in reverse order, but for integers, which may be indices."""
    return {
        name: array.reshape(-1)[::-1].reshape(array.shape).copy()
        if array.dtype.kind == "f" or array.dtype.itemsize == 1
        else array
        for name, array in feeds.items()
    }


def main() -> None:
    """Write the subjects that standard input asks for to a file, one pickle after the other."""
    job = json.loads(sys.stdin.read())
    with Path(job["path"]).open("wb") as file:
        for subject in subjects(Selection.from_json(job["selection"])):
            pickle.dump(subject, file, protocol=5)
