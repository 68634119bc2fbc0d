"""`ModelCompiler`, which writes models as they are loaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from armpy_compat.onnxruntime.enumerations import OrtCompileApiFlags
from armpy_compat.onnxruntime.errors import Fail, InvalidArgument, NotImplemented, status_error
from armpy_compat.onnxruntime.session_options import SessionOptions
from armpy_compat.onnxruntime.session_source import SessionSource


class ModelCompiler:
    """Writes a model that sessions load: in ONNX's form, with its external data in it.

    Parameters
    ----------
    sess_options : SessionOptions
        Their sizes and initializers become the model's.
    input_model_path_or_bytes : str, path or bytes
    embed_compiled_data_into_model : bool
        Has no effect: sessions compile, and keep what they compile. `armpy compile` writes compiled
        models.
    external_initializers_file_path, get_initializer_location_func : object
        Have to be left out.
    external_initializers_size_threshold, graph_optimization_level : int
        Have no effect.
    flags : int
        See `OrtCompileApiFlags`.

    Raises
    ------
    ValueError, TypeError
        If the model is empty, or neither a path nor bytes.
    NoSuchFile, InvalidProtobuf, InvalidArgument, Fail
        If the model's file cannot be read.
    NotImplemented
        If initializers are to be written to other files.
    """

    def __init__(
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes: str | os.PathLike[str] | bytes,
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | os.PathLike[str] | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: int = 0,
        get_initializer_location_func: Callable[..., object] | None = None,
    ) -> None:
        model = input_model_path_or_bytes
        if not isinstance(model, str | os.PathLike | bytes):
            raise TypeError(f"Unable to load from type '{type(model)}'")
        if not model:
            kind = "bytes array" if isinstance(model, bytes) else "path"
            raise ValueError(f"Input model {kind} is empty")
        if external_initializers_file_path or get_initializer_location_func is not None:
            text = "initializers in other files; save the model with onnx.save_model"
            raise status_error(NotImplemented, text)
        self._flags = int(flags)
        path, data = (None, model) if isinstance(model, bytes) else (os.fspath(model), None)
        self._source = SessionSource(path, data)
        self._source.apply(sess_options)

    def compile_to_bytes(self) -> bytes:
        """Return the contents of the model's file.

        Raises
        ------
        Fail
            If the flags ask for compiled nodes.
        """
        if self._flags & OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED:
            raise status_error(Fail, "Unable to compile any nodes: sessions compile them on armpy.")
        return self._source.self_contained().SerializeToString()  # type: ignore[no-any-return]

    def compile_to_stream(self, write_function: Callable[[bytes], object]) -> None:
        """Hand the contents of the model's file to a function; raises as `compile_to_bytes`."""
        write_function(self.compile_to_bytes())

    def compile_to_file(self, output_model_path: str | os.PathLike[str] | None = None) -> None:
        """Write the model's file; without a path beside a model ``x.onnx`` as ``x_ctx.onnx``.

        Raises
        ------
        InvalidArgument
            If there is no path.
        Fail
            If there is a file and the flags say so, or as `compile_to_bytes`.
        """
        if output_model_path is not None:
            path = Path(output_model_path)
        elif self._source.path is not None:
            path = Path(self._source.path)
            path = path.with_name(f"{path.stem}_ctx.onnx")
        else:
            raise status_error(InvalidArgument, "Output model path is empty")
        if self._flags & OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS and path.exists():
            raise status_error(
                Fail, f"Failed to write the model, since the file '{path}' exists already"
            )
        path.write_bytes(self.compile_to_bytes())
