"""Calibration data: arrays in files."""

from __future__ import annotations

import logging
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from armpy.errors import InvalidArgumentError
from armpy.execution import as_input
from armpy.graph import Graph
from armpy.ops.operation import Array

_log = logging.getLogger("armpy_tools.quantize")

Sample: TypeAlias = Mapping[str, object]
"""One array for each input, by name."""

Data: TypeAlias = "str | os.PathLike[str] | Mapping[str, object] | Iterable[Sample]"
"""Samples; or a folder of .npy files, an .npz file, or a mapping, of the kind that holds N samples
along the first axis of each array."""

_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    SyntaxError,
    tokenize.TokenError,  # a header that ends early
    TypeError,
    KeyError,
    OverflowError,
    NotImplementedError,  # a compression that is not known
    RuntimeError,  # a password
    MemoryError,  # a declared shape larger than the file
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a damaged file may raise."""


def read_samples(
    graph: Graph, data: Data, limit: int | None = None, *, is_quiet: bool = False
) -> list[list[Array]]:
    """The samples that data hold, as arrays in the order of a graph's inputs.

    Parameters
    ----------
    data : path, mapping of str to array_like, or iterable of mappings
        A path leads to an ``.npz`` file with an array for each input, or to a folder of ``.npy``
        files, each a sample or several along the first axis.
    limit : int, optional
        How many samples are taken at most.
    is_quiet : bool
        Whether an array of another name for the only input is not logged: data may be read twice.

    Raises
    ------
    InvalidArgumentError
        If a file cannot be read, or arrays do not fit the inputs or hold non-numbers.
    """
    samples: Iterable[tuple[str, object]]  # each with its file, if there are several
    if isinstance(data, str | os.PathLike):
        samples = _in_files(graph, Path(data), is_quiet=is_quiet)
    elif isinstance(data, Mapping):
        samples = (("", sample) for sample in _rows(graph, data, "data"))
    else:
        samples = (("", sample) for sample in (data if isinstance(data, Iterable) else [data]))
    arrays: list[list[Array]] = []
    for file, sample in samples:
        if limit is not None and len(arrays) == limit:
            break
        named = _checked_mapping(graph, sample, data)
        try:
            arrays.append(in_order(graph, named))
            _check_numbers(graph, arrays[-1], len(arrays))
        except InvalidArgumentError as error:
            error.where = f"{file}, {error.where}" if file else error.where
            raise
    if not arrays:
        raise InvalidArgumentError(
            "there are no data", where="data", fix="Give one sample at least"
        )
    return arrays


def _checked_mapping(graph: Graph, sample: object, data: object) -> Sample:
    """A sample, if it says which input each array is for."""
    if not isinstance(sample, Mapping):
        arrays = ", ".join(f"'{value.name}': array" for value in graph.inputs)
        kind = type(data).__name__
        content = "" if isinstance(data, np.ndarray) else f" of {type(sample).__name__}"
        raise InvalidArgumentError(
            "the data do not name the model's inputs",
            where="data",
            expected="a mapping of arrays by input, with samples along their first axis",
            actual=f"{kind}{content}",
            fix=f"Pass {{{arrays}}}",
        )
    return sample


def fault_of(samples: Sequence[Sequence[Array]]) -> str:
    """Why samples say little about other inputs, in a line; empty if nothing is seen."""
    arrays = [array for sample in samples for array in sample if array.size > 1]
    if arrays and all(array.dtype.kind != "O" and np.ptp(array) == 0 for array in arrays):
        return "each array of the data holds one number only"
    first, *others = samples or [()]
    if others and all(
        np.array_equal(array, other)
        for sample in others
        for array, other in zip(first, sample, strict=True)
    ):
        return f"all {len(samples)} samples of the data are equal"
    return ""


def _check_numbers(graph: Graph, sample: Sequence[Array], number: int) -> None:
    """Check that a sample has no NaN: one spoils every range that it takes part in."""
    for value, array in zip(graph.inputs, sample, strict=True):
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise InvalidArgumentError(
                f"sample {number} of the data holds NaN",
                where=f"input '{value.name}'",
                expected="finite numbers",
                actual=f"NaN in {np.isnan(array).sum()} of {array.size} elements",
                fix="Look how the data were made, or leave the sample out",
            )


def _in_files(graph: Graph, path: Path, *, is_quiet: bool) -> Iterable[tuple[str, Sample]]:
    """The samples in a folder, each with its file, or in an archive."""
    if path.is_dir():
        files = sorted(path.glob("*.npy"))
        if len(graph.inputs) != 1:
            raise InvalidArgumentError(
                "a folder of arrays serves a model of one input",
                where=str(path),
                expected="an .npz file with " + ", ".join(f"'{v.name}'" for v in graph.inputs),
            )
        if not files:
            raise InvalidArgumentError(
                "there are no .npy files in the folder",
                where=str(path),
                fix="Name the folder that they are in, or an .npz file itself",
            )
        name = graph.inputs[0].name
        for file in files:
            for sample in _rows(graph, {name: _only_array(file)}, str(file)):
                yield str(file), sample
        return
    arrays = _content(path)
    if not isinstance(arrays, dict):
        arrays = {graph.inputs[0].name: arrays}
    names = [value.name for value in graph.inputs]
    if len(arrays) == len(names) == 1 and names[0] not in arrays:
        ((name, array),) = arrays.items()
        if not is_quiet:
            text = "%s: its only array '%s' is taken for the model's only input '%s'."
            _log.warning(text, path, name, names[0])
        arrays = {names[0]: array}
    for sample in _rows(graph, arrays, str(path)):
        yield "", sample


def _content(file: Path) -> Array | dict[str, Array]:
    """Return the contents of a NumPy file: an array, or several by name.

    Notes
    -----
    Members of an archive are read when they are asked for: all that can be wrong with them shows
    here and nowhere else.
    """
    try:
        with file.open("rb") as stream:
            content = np.load(stream, allow_pickle=False)
            if not isinstance(content, np.lib.npyio.NpzFile):
                array: Array = content
                return array
            with content:
                return {name: content[name] for name in content}
    except _UNREADABLE as error:
        reason = error.args[0] if isinstance(error, tokenize.TokenError) else error
        raise InvalidArgumentError(
            f"the file cannot be read: {str(reason).rstrip('.') or type(error).__name__}",
            where=str(file),
            expected="arrays of numbers as .npy or .npz files hold them",
        ) from error


def _only_array(file: Path) -> Array:
    """The array that a file of one holds."""
    content = _content(file)
    if isinstance(content, dict):
        raise InvalidArgumentError(
            "the file is an archive", where=str(file), expected="one array, as np.save writes it"
        )
    return content


def _rows(graph: Graph, arrays: Mapping[str, object], where: str) -> Iterable[Sample]:
    """One sample per index of the first axis; the arrays themselves if they are one sample."""
    _check_names(graph, arrays)
    shapes = {value.name: value.info.shape for value in graph.inputs}
    arrays_by_name = {name: np.asarray(array) for name, array in arrays.items()}
    counts = {
        _count(array.shape, shapes.get(name), name, where) for name, array in arrays_by_name.items()
    }
    if None in counts and len(counts) == 1:
        yield arrays_by_name
        return
    if len(counts) != 1:
        raise InvalidArgumentError(
            "the arrays hold different numbers of samples",
            where=where,
            actual=", ".join(f"{name} {array.shape}" for name, array in arrays_by_name.items()),
        )
    (count,) = counts
    assert count is not None
    for index in range(count):
        yield {
            name: array[index].reshape(_one(array.shape[1:], shapes.get(name)))
            for name, array in arrays_by_name.items()
        }


def _one(shape: Sequence[int], wanted: Sequence[int | None] | None) -> tuple[int, ...]:
    """The shape of one sample: with an axis of 1 in front where the input has one more."""
    return (1, *shape) if wanted is not None and len(wanted) > len(shape) else tuple(shape)


def _count(
    shape: tuple[int, ...], wanted: Sequence[int | None] | None, name: str, where: str
) -> int | None:
    """Return how many samples an array holds; None if it is one itself."""
    if wanted is None:
        return None
    if len(shape) == len(wanted) and wanted and wanted[0] in (1, None):
        return shape[0]
    if len(shape) == len(wanted) + 1:
        return shape[0]
    if len(shape) == len(wanted) - 1 and wanted[0] in (1, None):
        raise InvalidArgumentError(
            "the array has no axis of samples",
            where=where,
            expected=f"an axis in front of the {len(shape)} of '{name}'",
            actual=str(shape),
            fix="Add one with array[np.newaxis]",
        )
    return None


def in_order(graph: Graph, sample: Sample) -> list[Array]:
    """The arrays of a sample in the order of a graph's inputs, checked.

    Raises
    ------
    InvalidArgumentError
        If one is missing, there is one too many, or one does not fit.
    """
    _check_names(graph, sample)
    return [as_input(value.name, value.info, sample[value.name]) for value in graph.inputs]


def _check_names(graph: Graph, arrays: Mapping[str, object]) -> None:
    """Check that arrays are those of a graph's inputs."""
    names = [value.name for value in graph.inputs]
    missing = [name for name in names if name not in arrays]
    unknown = [name for name in arrays if name not in names]
    if missing or unknown:
        is_misnamed = len(missing) == len(unknown) == 1
        raise InvalidArgumentError(
            "the data do not have the model's inputs",
            where="data",
            expected=", ".join(f"'{name}'" for name in names),
            actual=", ".join(f"'{name}'" for name in arrays) or "nothing",
            fix=f"Rename the array '{unknown[0]}' to '{missing[0]}'"
            if is_misnamed
            else "Give one array for each input, by its name",
        )
