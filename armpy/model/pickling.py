"""Copying: how a model comes to be in another process, or twice in one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from armpy.errors import InvalidArgumentError, ParserError
from armpy.model.load_request import check_unchanged
from armpy.store.archive.checksum_cache import content_digest

if TYPE_CHECKING:
    from armpy.execution.options import RuntimeOptions
    from armpy.execution.properties import NetworkProperties
    from armpy.graph import Graph
    from armpy.model.model import Model
    from armpy.model.opened_model import OpenedModel


@dataclass(frozen=True, slots=True)
class FileRecipe:
    """Recipe of a model that `armpy.load` makes again.

    Parameters
    ----------
    source : str or bytes
        A path, or contents.
    digests : mapping of str to str
        SHA-256 of each file that the model was made of, by path; empty for contents.
    arguments : mapping of str to object
        Of `armpy.load`.
    options : RuntimeOptions, optional
        Of the runtime that it was loaded on, if that was not its own.
    """

    source: str | bytes
    digests: Mapping[str, str]
    arguments: Mapping[str, Any]  # Any: as `armpy.load` takes them
    options: RuntimeOptions | None

    def make(self) -> Model:
        """Load it.

        Raises
        ------
        ParserError
            If the file is not the same any more.
        """
        import armpy  # noqa: PLC0415 - the room above this one, as an application calls it

        for path, digest in self.digests.items():
            if _digest(path) != digest:
                raise ParserError(
                    "the model file is not the one whose model was pickled",
                    where=path,
                    fix="Pickle the model anew, or load the file by its path",
                )
        arguments = dict(self.arguments)
        if self.options is not None:
            arguments["runtime"] = armpy.Runtime(self.options)
        model: Model = armpy.load(self.source, **arguments)
        return model


@dataclass(frozen=True, slots=True)
class NetworkRecipe:
    """Recipe of a model that is made of its network again; parameters as of `Model`."""

    graph: Graph
    options: RuntimeOptions
    properties: NetworkProperties
    quantize_inputs: bool
    dequantize_outputs: bool

    def make(self) -> Model:
        """Prepare it."""
        from armpy.execution.runtime import Runtime  # noqa: PLC0415 - as above
        from armpy.model.model import Model  # noqa: PLC0415 - which imports this

        return Model(
            self.graph,
            Runtime(self.options),
            closes_runtime=True,
            properties=self.properties,
            quantize_inputs=self.quantize_inputs,
            dequantize_outputs=self.dequantize_outputs,
        )


@dataclass(frozen=True, slots=True)
class ModelRecipe:
    """Recipe of a model: what it comes from, and what has been asked of that.

    Parameters
    ----------
    first : FileRecipe or NetworkRecipe
    steps : tuple of (str, object)
        Methods of models and what they were given, such as ``("reshape", {...})``.
    """

    first: FileRecipe | NetworkRecipe
    steps: tuple[tuple[str, object], ...] = field(default=())

    def __call__(self) -> Model:
        """Make it."""
        model = self.first.make()
        for method, given in self.steps:
            model = getattr(model, method)(given)
        return model


def model_recipe(model: OpenedModel) -> ModelRecipe:
    """How a model is made again; only what it says is copied, not what its variables hold.

    Raises
    ------
    InvalidArgumentError
        If the model is closed, or has something that cannot be copied.
    ParserError
        If its file has changed since it was loaded, or is gone.
    """
    if model.is_closed:
        raise InvalidArgumentError("the model is closed", fix="Load it again")
    parent = model._made_from
    if parent is not None:
        before = model_recipe(parent[0])
        return ModelRecipe(before.first, (*before.steps, parent[1:]))
    first = _network_recipe(model) if model._request is None else _file_recipe(model)
    _check_copied(first)
    return ModelRecipe(first)


def _file_recipe(model: OpenedModel) -> FileRecipe:
    """The recipe of a model that `armpy.load` made."""
    request = model._request
    assert request is not None
    arguments = {
        name: value
        for name, value in request._asdict().items()
        if name not in ("source", "runtime") and value is not None
    }
    options = None if request.runtime is None else request.runtime.options
    if request.path is None:
        return FileRecipe(bytes(memoryview(request.source)), {}, arguments, options)  # type: ignore[arg-type]  # no path
    path = os.path.abspath(os.fsdecode(request.path))
    check_unchanged(model._file_state)
    digests = {file: _digest(file) for file in model._file_state}
    return FileRecipe(path, digests, arguments, options)


def _network_recipe(model: OpenedModel) -> NetworkRecipe:
    """The recipe of a model that was made of a network."""
    reals = model.quantize_inputs, model.dequantize_outputs
    return NetworkRecipe(model._source, model.runtime.options, model.properties, *reals)


def _check_copied(recipe: FileRecipe | NetworkRecipe) -> None:
    """Check that what a model was loaded with can be copied; the network's elements are."""
    import pickle  # noqa: PLC0415 - few models are pickled

    if isinstance(recipe, FileRecipe):
        parts: dict[str, object] = {**recipe.arguments, "runtime": recipe.options}
    else:
        parts = {"runtime": recipe.options, "properties": recipe.properties}
    for name, part in parts.items():
        try:
            pickle.dumps(part)
        except Exception as error:  # an application's own object
            raise InvalidArgumentError(
                f"the model cannot be copied, as its {name} cannot be pickled: {error}",
                where="Model",
                fix="Load it where it is needed: give the other process the path",
            ) from error


def _digest(path: str) -> str:
    """What a file holds."""
    try:
        return content_digest(path)
    except OSError as error:
        raise ParserError(f"the model file cannot be read: {error}", where=path) from error


def make(recipe: Callable[[], Model]) -> Model:
    """Make a model again.

    Raises
    ------
    ArmpyError
        As from `armpy.load`.
    """
    return recipe()
