"""Elements of tensors that lie in files beside the model, or in memory of the caller's.

Notes
-----
A file says where they lie, so nothing that it says is trusted: only regular files in the model's
own folder, or in that of the file that the model links to, are opened, and only as many bytes as
the tensor has elements. The caller may name another folder, which takes the place of these.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
from onnx import TensorProto

from armpy.errors import ArmpyError, ParserError, suggest_path
from armpy.ops.operation import Array
from armpy.plugins.hooks.front_end import FrontEndOptionError
from armpy.plugins.hooks.model_file import ModelFile
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_onnx.element_types import data_type_of, read_tensor
from armpy_onnx.reading import external_tensors, is_external, load_model

_BITS = {
    TensorProto.INT4: 4,
    TensorProto.UINT4: 4,
    TensorProto.FLOAT4E2M1: 4,
    TensorProto.INT2: 2,
    TensorProto.UINT2: 2,
}
"""Bits of elements of which several lie in one byte."""


class ExternalData:
    """The files beside a model, each mapped once.

    Parameters
    ----------
    file : ModelFile, optional
        The model's file, which records the files read beside it.
    folder : str
        The front-end's option ``external_data``: the folder of the files; the model's own if empty.
    memory : mapping of str to memoryview, optional
        Elements by location that lie in memory, and are read there without a copy; other locations
        are names of files.

    Raises
    ------
    FrontEndOptionError
        If there is no such folder.
    """

    def __init__(
        self,
        file: ModelFile | None = None,
        folder: str = "",
        memory: Mapping[str, memoryview] = MappingProxyType({}),
    ) -> None:
        self._file = file
        self._folder = folder
        self._memory = memory
        if folder and not os.path.isdir(folder):
            raise FrontEndOptionError(
                "the folder does not exist",
                where="option 'external_data'",
                expected="the folder of the model's external data",
                actual=repr(folder),
                fix=suggest_path(folder),
            )
        self._files: dict[Path, memoryview] = {}

    def read(self, tensor: onnx.TensorProto, where: str) -> tuple[Array, DataType]:
        """Read a tensor like `read_tensor`, from wherever the elements lie.

        Raises
        ------
        ParserError
            If they are not where they should be, or not as many.
        """
        if not is_external(tensor):
            return read_tensor(tensor, where)
        part, data_type = self._part(tensor, where)
        if tensor.data_type in _BITS:
            return read_tensor(_packed(tensor, part), where)
        little = data_type.dtype.newbyteorder("<")
        array = np.frombuffer(part, little).reshape(tuple(tensor.dims))
        return (array if array.flags.aligned else array.copy()), data_type

    def with_elements(
        self, attributes: Mapping[str, onnx.AttributeProto], where: str
    ) -> Mapping[str, onnx.AttributeProto]:
        """A node's attributes with the elements of tensors in them.

        Raises
        ------
        ParserError
            As of `read`.
        """
        external = {name: a for name, a in attributes.items() if is_external(a.t)}
        if not external:
            return attributes
        read = {}
        for name, attribute in external.items():
            part, _ = self._part(attribute.t, f"{where}, attribute '{name}'")
            read[name] = onnx.AttributeProto(
                name=attribute.name, type=attribute.type, t=_packed(attribute.t, part)
            )
        return {**attributes, **read}

    def _part(self, tensor: onnx.TensorProto, where: str) -> tuple[memoryview, DataType]:
        """The bytes of a tensor in another file, and its data type."""
        data_type = data_type_of(tensor.data_type, where)
        entries = {entry.key: entry.value for entry in tensor.external_data}
        data = self._mapped(entries.get("location", ""), where)
        offset = _number(entries.get("offset", "0"), where)
        size = _size_bytes(tensor, data_type, where)
        length = _number(entries["length"], where) if "length" in entries else size
        if length != size or offset > len(data) or size > len(data) - offset:
            raise ParserError(
                "the tensor's length or offset does not match its file",
                where=where,
                expected=f"{size} bytes",
                actual=f"{length} bytes at {offset} of {len(data)}",
            )
        return data[offset : offset + size], data_type

    def _mapped(self, location: str, where: str) -> memoryview:
        """Memory of the caller's, or a file in the folder of external data."""
        if location in self._memory:
            return self._memory[location]
        if self._file is None or not (self._folder or self._file.path):
            raise ParserError(
                "the tensor lies in another file",
                where=where,
                actual="a model that is not from a file",
                fix="Load the model by its path, or name the folder with the front-end option "
                "external_data",
            )
        folder = f"'{self._folder}'" if self._folder else "the model's folder"
        try:
            path = self._find(self._file, location)
            if path is None and self._folder:
                raise ParserError(
                    "the tensor lies outside of the folder of external data",
                    where=where,
                    expected=f"a file in '{self._folder}' or below",
                    actual=repr(location),
                    fix="Move the file there, and save the model with that location",
                )
            if path is None:
                raise ParserError(
                    "the tensor lies outside of the model's folder",
                    where=where,
                    expected="a file in this folder, or in that of the file that the model links "
                    "to, or below",
                    actual=repr(location),
                    fix="Move the file there, and save the model with that location, or name "
                    "its folder with the front-end option external_data",
                )
            if path not in self._files:
                self._file.also_read(path)
                self._files[path] = _mapped(path)
        except ArmpyError:
            raise
        except (OSError, ValueError, RuntimeError) as error:
            raise ParserError(
                f"a file beside the model cannot be read: {error}",
                where=where,
                expected=f"'{location}' in {folder}",
                fix="Copy it there",
            ) from error
        return self._files[path]

    def _find(self, file: ModelFile, location: str) -> Path | None:
        """The resolved path of a data file; None if it is not in a folder that may have it."""
        if self._folder:
            return _within(Path(self._folder), location, [Path(self._folder).resolve()])
        assert file.path is not None  # checked before
        return find_location(file.path, location)


def find_location(model_path: Path, location: str) -> Path | None:
    """The resolved path of a tensor's data file; None if it is not in a folder of the model's.

    Parameters
    ----------
    model_path : Path
        The model's file or a link to it, as in the cache of the Hugging Face hub, where links
        in one folder lead to files in another one.
    location : str
        Name of the file in the model, relative to the folder of `model_path`.

    Raises
    ------
    OSError, ValueError, RuntimeError
        If the path cannot be followed: it holds NUL, or links lead in a circle.
    """
    folders = model_path.parent.resolve(), model_path.resolve().parent
    return _within(model_path.parent, location, folders)


def _within(base: Path, location: str, folders: Sequence[Path]) -> Path | None:
    """The resolved path of a location relative to `base`; None if it is in none of the folders."""
    if not location or Path(location).is_absolute():
        return None
    path = (base / location).resolve()
    return path if any(path.is_relative_to(folder) for folder in folders) else None


def _packed(tensor: onnx.TensorProto, part: memoryview) -> onnx.TensorProto:
    return TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=bytes(part))


def _mapped(path: Path) -> memoryview:
    """The bytes of a regular file; another kind might never open."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _number(text: str, where: str) -> int:
    """An offset or a length."""
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        raise ParserError(
            "an offset or length is not a whole number",
            where=where,
            expected=f"at most {_MOST_DIGITS} digits",
            actual=repr(text)[:80],
        )
    return int(text)


_MOST_DIGITS = 19


def _size_bytes(tensor: onnx.TensorProto, data_type: DataType, where: str) -> int:
    """Return how many bytes a tensor's elements take up in a file."""
    if any(dim < 0 for dim in tensor.dims):
        raise ParserError("a dimension is negative", where=where, actual=str(list(tensor.dims)))
    info = TensorInfo(tuple(tensor.dims), data_type)
    bits = _BITS.get(tensor.data_type, 8 * data_type.size_bytes)
    return -(-info.num_elements * bits // 8)


def with_data_names(file: ModelFile, names: Mapping[Path, str]) -> bytes:
    """Contents of a model file in which external data has other names.

    Parameters
    ----------
    file : ModelFile
        File with a path.
    names : mapping of Path to str
        New locations, relative to the model's new folder, by the resolved paths of the data files.
        Every other location becomes empty, which no reader accepts.

    Raises
    ------
    ParserError
        If the model file cannot be read, or a data file is not in a folder of the model's, as the
        front-end's option ``external_data`` allows.

    References
    ----------
    ONNX, "External Data": the entry ``location`` of ``TensorProto.external_data``.
    """
    assert file.path is not None  # bytes alone have no data files
    model = load_model(file)
    renamed = {""}
    for tensor in external_tensors(model):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = _new_name(file.path, entry.value, names)
                renamed.add(entry.value)
    elsewhere = [str(path) for path, name in names.items() if name not in renamed]
    if elsewhere:
        raise ParserError(
            "external data lies in another folder than the model",
            where=file.label,
            actual=", ".join(elsewhere),
            fix="Copy it into the model's folder, and leave the option external_data out",
        )
    contents: bytes = model.SerializeToString()
    return contents


def _new_name(model_path: Path, location: str, names: Mapping[Path, str]) -> str:
    """The new location of a data file; empty if the file does not move with the model."""
    try:
        data_file = find_location(model_path, location)
    except (OSError, ValueError, RuntimeError):
        return ""  # the front-end cannot have read this file either
    return "" if data_file is None else names.get(data_file, "")
