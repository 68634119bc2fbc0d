"""Model files as sessions are given them, and the changes that options ask for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx.external_data_helper import load_external_data_for_model

from armpy_compat.onnxruntime.errors import (
    Fail,
    InvalidArgument,
    InvalidProtobuf,
    NoSuchFile,
    status_error,
)
from armpy_compat.onnxruntime.session_options import SessionOptions
from armpy_onnx.messages.canonical import decode_texts

_FOLDER = "session.model_external_initializers_file_folder_path"
"""Configuration entry with the folder of external data, for models that are given as bytes."""

_Arrays = dict[str, npt.NDArray[Any]]  # Any: elements of every type


class SessionSource:
    """A model file: its contents, and what armpy is to load.

    Parameters
    ----------
    path : str, optional
    data : bytes, optional
        One of the two.

    Raises
    ------
    NoSuchFile, InvalidProtobuf, InvalidArgument, Fail
        If there is no such file, it is damaged, it holds no graph, or its form is newer or missing.
    """

    def __init__(self, path: str | None, data: bytes | None) -> None:
        self.path, self._data = path, data
        self._is_changed = False
        front = "" if path is None else f"Load model from {path} failed:"
        if path is not None and not os.path.exists(path):
            text = f"{front}Load model {path} failed. File doesn't exist"
            raise status_error(NoSuchFile, text)
        try:
            # The package raises errors of `google.protobuf`, which it does not name.
            self.model = onnx.load_model_from_string(data if path is None else _contents(path))
        except Exception as error:
            text = f"{front}Protobuf parsing failed." if path else _DAMAGED
            raise status_error(InvalidProtobuf, text) from error
        decode_texts(self.model)
        if not self.model.HasField("graph"):
            raise status_error(InvalidArgument, f"{front}No graph was found in the protobuf.")
        if not self.model.HasField("ir_version"):
            raise status_error(Fail, f"{front}Missing model IR version.")
        if self.model.ir_version > onnx.IR_VERSION:
            text = (
                f"Unsupported model IR version: {self.model.ir_version}, max supported IR version: "
            )
            raise status_error(Fail, f"{front}{text}{onnx.IR_VERSION}")

    @property
    def loadable(self) -> str | bytes:
        """The path, or the contents if there is none or options have changed the model."""
        if self.path is not None and not self._is_changed:
            return self.path
        if self._data is not None and not self._is_changed:
            return self._data
        return self.self_contained().SerializeToString()  # type: ignore[no-any-return]

    @property
    def front_end(self) -> str | None:
        """The front-end to name: the contents of some files do not show that they are ONNX."""
        has_suffix = self.path is not None and self.path.lower().endswith(".onnx")
        return None if has_suffix and not self._is_changed else "onnx"

    def apply(self, options: SessionOptions) -> None:
        """Change the model as the options of a session ask for."""
        self._set_dimensions(options)
        self._replace(options.initializer_arrays)
        self._take_external_data(options)

    def with_inputs(self, names: frozenset[str], of_any_rank: frozenset[str]) -> bytes:
        """Contents of the model with other inputs.

        Parameters
        ----------
        names : frozenset of str
            Initializers that become inputs.
        of_any_rank : frozenset of str
            Inputs whose shape is left open, as are then those of the outputs.
        """
        model = self.self_contained()
        if of_any_rank:
            opened = [value for value in model.graph.input if value.name in of_any_rank]
            for value in (*opened, *model.graph.output):
                value.type.tensor_type.ClearField("shape")
            del model.graph.value_info[:]
        remaining = [tensor for tensor in model.graph.initializer if tensor.name not in names]
        del model.graph.initializer[:]
        model.graph.initializer.extend(remaining)
        return model.SerializeToString()  # type: ignore[no-any-return]

    def save(self, options: SessionOptions) -> None:
        """Write the model, unless the options name no file for it.

        Notes
        -----
        ONNX Runtime writes a graph that it has optimised. This writes the graph as it was loaded,
        with the initializers in another file if the options say so.
        """
        if not options.optimized_model_filepath:
            return
        entries = options.config_entries
        location = entries.get("session.optimized_model_external_initializers_file_name")
        least = entries.get(
            "session.optimized_model_external_initializers_min_size_in_bytes", "1024"
        )
        path = Path(options.optimized_model_filepath)
        if not path.parent.is_dir():
            text = f"SystemError : 2: there is no folder {path.parent} to write the model to"
            raise status_error(InvalidArgument, text)
        model = self.self_contained()
        if location is not None:
            (path.parent / location).unlink(missing_ok=True)  # the package appends to it
            for tensor in model.graph.initializer:  # it moves elements in this form alone
                array = onnx.numpy_helper.to_array(tensor)
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        onnx.save_model(
            model,
            str(path),
            save_as_external_data=location is not None,
            location=location,
            size_threshold=int(least),
        )

    def self_contained(self) -> Any:  # Any: onnx.ModelProto, as the package has no types
        """A copy of the model with the elements that lie in other files."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        folder = "" if self.path is None else os.path.dirname(os.path.abspath(self.path))
        load_external_data_for_model(model, folder)
        return model

    def _set_dimensions(self, options: SessionOptions) -> None:
        """Give open dimensions of inputs the sizes of the options."""
        for value in self.model.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                size = options.dimensions_by_name.get(dim.dim_param)
                if dim.denotation in options.dimensions_by_denotation:
                    size = options.dimensions_by_denotation[dim.denotation]
                if size is not None and not dim.HasField("dim_value"):
                    dim.dim_value = size
                    self._is_changed = True

    def _replace(self, arrays: _Arrays) -> None:
        """Put other tensors in place of initializers."""
        for tensor in self.model.graph.initializer:
            if tensor.name in arrays:
                array = np.ascontiguousarray(arrays[tensor.name])
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
                self._is_changed = True

    def _take_external_data(self, options: SessionOptions) -> None:
        """Read external data from files in memory, or from the folder that the options name.

        Raises
        ------
        Fail
            If data is missing or shorter than the model states.
        """
        for tensor in self.model.graph.initializer:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                stated = {entry.key: entry.value for entry in tensor.external_data}
                contents = options.external_files.get(stated.get("location", ""))
                if contents is not None:
                    _fill(tensor, contents, stated)
                    self._is_changed = True
        folder = options.config_entries.get(_FOLDER)
        if folder is not None and self.path is None:
            try:
                load_external_data_for_model(self.model, folder)
            # The package's error of a path outside of the folder has no base of its own.
            except Exception as error:
                text = f"External data of the model cannot be read from {folder}: {error}"
                raise status_error(Fail, text) from error
            self._is_changed = True


def _fill(tensor: Any, contents: bytes, stated: dict[str, str]) -> None:  # Any: onnx.TensorProto
    """Put a part of a file in memory into a tensor; Fail if the file ends before it."""
    begin = int(stated.get("offset", 0))
    size_bytes = int(stated.get("length", len(contents) - begin))
    if not 0 <= begin <= begin + size_bytes <= len(contents):
        raise status_error(
            Fail,
            f"External initializer '{tensor.name}': expected {size_bytes} bytes from {begin} on in"
            f" '{stated['location']}'; got a file of {len(contents)} bytes",
        )
    tensor.raw_data = contents[begin : begin + size_bytes]
    tensor.ClearField("data_location")
    tensor.ClearField("external_data")


def options_in_model(model: Any) -> SessionOptions | None:  # Any: onnx.ModelProto
    """Options of a session that a model's file brings; None if it has none.

    References
    ----------
    ONNX Runtime: the metadata property ``ort_config``, read if ORT_LOAD_CONFIG_FROM_MODEL is 1.
    """
    for entry in model.metadata_props:
        if entry.key == "ort_config":
            options = SessionOptions()
            for name, value in json.loads(entry.value).get("session_options", {}).items():
                setattr(options, name, value)
            return options
    return None


def _contents(path: str) -> bytes:
    """The bytes of a file."""
    return Path(path).read_bytes()


_DAMAGED = "Failed to load model because protobuf parsing failed."
