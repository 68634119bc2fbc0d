"""Pickling: models in other processes, and copies in the same process."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from armpy.core.dataclass import dataclass
from armpy.core.file_digest import content_digest
from armpy.errors import InvalidArgumentError, ParserError
from armpy.execution.runtime import Runtime
from armpy.model.load_request import FileState, LoadRequest, check_unchanged
from armpy.model.provenance import Derivation, Provenance

if TYPE_CHECKING:
    from armpy.execution.setup.options import RuntimeOptions
    from armpy.graph import Graph

# Models are made by what their recipes are given, so that this module knows neither their class nor
# `armpy.load`: what a recipe makes is Any here.
MakeModel = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FileRecipe:
    """Recipe of a model that `armpy.load` makes again."""

    load: MakeModel  # `armpy.load`, pickled by its name
    source: str | bytes  # a path, or contents
    # SHA-256 of each file that the model was made of, by path; empty for contents.
    digests: Mapping[str, str]
    # Of `armpy.load`.
    arguments: Mapping[str, Any]  # Any: as `armpy.load` takes them
    options: RuntimeOptions | None  # of the runtime that it was loaded on, if that was not its own

    def make(self) -> Any:
        """Load it."""
        # Timestamps mean nothing on another machine, so contents are compared.
        for path, digest in self.digests.items():
            if (actual := _digest(path)) != digest:
                raise ParserError(
                    "the model file has changed since it was loaded",
                    where=path,
                    expected=f"SHA-256 {digest}",
                    actual=f"SHA-256 {actual}",
                    fix="Load the file again",
                )
        arguments = dict(self.arguments)
        if self.options is not None:
            arguments["runtime"] = Runtime(self.options)
        return self.load(self.source, **arguments)


@dataclass(frozen=True, slots=True)
class NetworkRecipe:
    """Recipe of a model that is made of its network again."""

    model_class: MakeModel  # `armpy.Model`, pickled by its name
    graph: Graph
    options: RuntimeOptions  # of the runtime, which is made anew
    # Of the class: how the network is loaded, and how real numbers are converted.
    arguments: Mapping[str, Any]  # Any: as the class takes them

    def make(self) -> Any:
        """Prepare it."""
        runtime = Runtime(self.options)
        return self.model_class(self.graph, runtime, closes_runtime=True, **self.arguments)


@dataclass(frozen=True, slots=True)
class ModelRecipe:
    """Recipe of a model: its source, and the calls made on that."""

    first: FileRecipe | NetworkRecipe
    # Methods of models and their arguments, such as ``("reshape", {...})``.
    steps: tuple[tuple[str, object], ...] = field(default=())

    def __call__(self) -> Any:
        """Make it."""
        model = self.first.make()
        for method, arguments in self.steps:
            model = getattr(model, method)(arguments)
        return model


def recipe_of(model: Any) -> ModelRecipe:
    """Say how a model is made again: of its file or network, with options; not its state.

    Raises InvalidArgumentError if the model is closed, or has something that cannot be copied;
    ParserError if its file has changed since it was loaded, or is gone.
    """
    network, provenance = model.handle, model.provenance
    network.check_open()
    derivation = provenance.derivation
    if derivation is not None:
        return derived_recipe(derivation)
    first: FileRecipe | NetworkRecipe
    if provenance.request is not None and provenance.load is not None:
        first = _file_recipe(provenance.load, provenance.request, provenance)
    else:
        arguments = {
            "quantize_inputs": model.quantize_inputs,
            "dequantize_outputs": model.dequantize_outputs,
            "properties": network.properties,
        }
        first = NetworkRecipe(type(model), network.source, network.runtime.options, arguments)
    _check_pickled({**first.arguments, "runtime": first.options})
    return ModelRecipe(first)


def derived_recipe(derivation: Derivation) -> ModelRecipe:
    """Say how a model that was made of another one is made again; errors as for `recipe_of`."""
    before = recipe_of(derivation.model)
    return ModelRecipe(before.first, (*before.steps, (derivation.method, derivation.given)))


def loaded_recipe(
    load: MakeModel,
    request: LoadRequest,  # without the runtime
    files: FileState,  # What the model's files were like
    options: RuntimeOptions | None,
) -> ModelRecipe:
    """Say how a model is loaded again, on a runtime of some options if it was given one."""
    return ModelRecipe(replace(_file_recipe(load, request, Provenance(files)), options=options))


def waiting(recipe: ModelRecipe) -> ModelRecipe:
    """The same for a process that is to compile: the model waits for that."""
    first = recipe.first
    if isinstance(first, FileRecipe):
        options = first.options
        # A registry that only looked for backends can be made anew with the same options.
        if options is not None and _has_plain_registry(options):
            options = replace(options, registry=None)
        first = replace(first, arguments={**first.arguments, "compile": "wait"}, options=options)
        _check_pickled({**first.arguments, "runtime": first.options})
    return ModelRecipe(first, recipe.steps)


def _has_plain_registry(options: RuntimeOptions) -> bool:
    """Return whether there is a registry with the backends that the other options find."""
    return options.registry is not None and options.registry.finds(options.plugin_options())


def _file_recipe(load: MakeModel, request: LoadRequest, provenance: Provenance) -> FileRecipe:
    """The recipe of a model that `armpy.load` made."""
    arguments = request.options.given()
    runtime = arguments.pop("runtime", None)  # it is made anew, with its options
    options = None if runtime is None else runtime.options
    if request.path is None:
        contents = bytes(memoryview(request.source))  # type: ignore[arg-type]  # no path
        return FileRecipe(load, contents, {}, arguments, options)
    path = os.path.abspath(os.fsdecode(request.path))
    check_unchanged(provenance.files)
    digests = {file: _digest(file) for file in provenance.files}
    return FileRecipe(load, path, digests, arguments, options)


def _check_pickled(parts: Mapping[str, object]) -> None:
    """Check that what a model was loaded with can be copied; the network's elements can."""
    for name, part in parts.items():
        try:
            pickle.dumps(part)
        except Exception as error:  # an application's own object, which may raise anything
            raise InvalidArgumentError(
                f"the model cannot be copied, as its {name} cannot be pickled: {error}",
                where="Model",
                fix="Load it where it is needed: give the other process the path",
            ) from error


def _digest(path: str) -> str:
    """The digest of a file's contents."""
    try:
        return content_digest(path)
    except OSError as error:
        raise ParserError(f"the model file cannot be read: {error}", where=path) from error
