"""Export of a model to a repository of Triton's."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import TYPE_CHECKING

from armpy import Model
from armpy.core.dataclass import dataclass
from armpy.errors import Argument, InvalidArgumentError, UnimplementedError
from armpy.model import ModelOrigin
from armpy.plugins.hooks import open_model_file
from armpy_serving.batching.arguments import batch_sizes
from armpy_serving.batching.rows import with_open_batch
from armpy_serving.triton.config import LABELS_FILE, TritonOptions, config_text, model_config
from armpy_serving.triton.ensemble import EnsembleOptions, EnsemblePart, ensemble_parts
from armpy_serving.triton.repository import CONFIG_FILE, check_free, put_model
from armpy_serving.triton.settings import InstanceSettings
from armpy_serving.triton.version_file import VersionFile, interface_of

if TYPE_CHECKING:
    from armpy.store.archive.signing import FileSignature

MODEL_FILE = "model.armpy"
MODULE_FILE = "model.py"

_MODULE = '''"""Written by ``armpy export-triton``; the settings are in armpy.json."""

from armpy_serving.triton import {class_name} as TritonPythonModel

__all__ = ["TritonPythonModel"]
'''


@dataclass(frozen=True, slots=True)
class TritonExport:
    """Parts of a model's export."""

    options: TritonOptions
    settings: InstanceSettings = field(default_factory=lambda: InstanceSettings(MODEL_FILE))
    """Settings of how the model is loaded; the name of its file is the export's own."""
    ensemble: EnsembleOptions | None = None  # steps before and after the model
    targets: Sequence[str] = ()  # machines that it is compiled for, as for `Model.save`
    sign: Callable[[bytes], FileSignature] | None = None  # as for `Model.save`
    force: bool = False
    """Whether a version that is there is replaced, and the configuration with it."""
    source_options: Mapping[str, object] = field(default_factory=dict)
    """Options of `armpy.load` by which the model's own file is read, should it be copied."""


def export_model(
    model: Model, repository: Path, export: TritonExport, source: Path | None = None
) -> tuple[Path, ...]:
    """Write what a repository of Triton's has of a model.

    Parameters
    ----------
    model : Model
        Model as it was loaded; it stays open.
    source : Path, optional
        The model's file, which goes into the repository as it is where the model cannot be compiled
        ahead of time: where no shapes are known, or an operation is a plugin's.

    Returns
    -------
    tuple of Path
        Folders that were written: the model's, and those of an ensemble.

    Raises
    ------
    InvalidArgumentError
        If Triton cannot have such a model, its batch cannot be opened, it is there already, or
        other versions of it have other inputs, outputs or batches.
    """
    options = export.options
    options.check()
    names = [options.name] if export.ensemble is None else export.ensemble.names(options.name)
    for name in names:
        check_free(repository, name, options.version, force=export.force)
    batched = _opened(model, options.max_batch)
    try:
        # Before anything is compiled: whether Triton can have it, beside the present files.
        parts = _parts(export, batched)
        for part in parts:
            check_free(
                repository,
                part.options.name,
                options.version,
                force=export.force,
                config=part.config,
            )
        # The ensemble last: it names the others.
        places = [_put(batched, repository, export, parts[0], source)]
        places += [_put_part(repository, part, export.force) for part in parts[1:]]
        return tuple(places)
    finally:
        if batched is not model:
            batched.close()


def _parts(export: TritonExport, model: Model) -> list[EnsemblePart]:
    """The model and its environment; the settings of the model are not known yet."""
    options, around = export.options, []
    if export.ensemble is not None:
        around = ensemble_parts(export.ensemble, options, model.inputs, model.outputs)
        options = replace(options, name=export.ensemble.names(options.name)[1], labels=())
    config = model_config(options, model.inputs, model.outputs)
    return [EnsemblePart(options, config, "TritonModel"), *around]


def _opened(model: Model, max_batch: int) -> Model:
    try:
        return with_open_batch(model, max_batch) if max_batch else model
    except InvalidArgumentError as error:
        # The fix of the error is for users of `Batcher`.
        raise InvalidArgumentError(
            error.failed,
            argument=Argument("max_batch"),
            actual=error.actual,
            fix="Leave it out: requests run one by one then",
        ) from error


def _put(
    model: Model, repository: Path, export: TritonExport, part: EnsemblePart, source: Path | None
) -> Path:
    options = part.options

    def write(folder: Path) -> None:
        version = folder / str(options.version)
        version.mkdir()
        sizes = batch_sizes(options.max_batch) if _rows_are_known(model, options) else ()
        settings = replace(export.settings, file=MODEL_FILE, sizes=sizes)
        if sizes:
            _save_sizes(model, version, export, settings)
        else:
            settings = _save(model, version, export, settings, source)
        _write_texts(folder, replace(part, settings=settings.document()))

    return put_model(
        repository, options.name, options.version, write, force=export.force, config=part.config
    )


def _put_part(repository: Path, part: EnsemblePart, force: bool) -> Path:
    def write(folder: Path) -> None:
        (folder / str(part.options.version)).mkdir()
        _write_texts(folder, part)

    options = part.options
    return put_model(
        repository, options.name, options.version, write, force=force, config=part.config
    )


def _write_texts(folder: Path, part: EnsemblePart) -> None:
    """Write a model's configuration and labels, its version's settings, and the module."""
    options, version = part.options, folder / str(part.options.version)
    (folder / CONFIG_FILE).write_text(config_text(part.config), encoding="utf-8")
    VersionFile(interface_of(part.config), part.settings).write(version)
    if options.labels:
        text = "".join(f"{label}\n" for label in options.labels)
        (folder / LABELS_FILE).write_text(text, encoding="utf-8")
    if part.class_name:
        text = _MODULE.format(class_name=part.class_name)
        (version / MODULE_FILE).write_text(text, encoding="utf-8")
        # Where Python would keep the compiled module: a server that polls would see another time
        # of change, and load the model a second time.
        (version / "__pycache__").touch()


def _rows_are_known(model: Model, options: TritonOptions) -> bool:
    """Return whether all but the batch is, so that the model can be prepared for batches."""
    rows = [(spec.shape or ())[1:] for spec in model.inputs]
    return options.max_batch > 0 and not any(n is None for row in rows for n in row)


def _save_sizes(
    model: Model, folder: Path, export: TritonExport, settings: InstanceSettings
) -> None:
    """Write the model to the version's folder, a file for each size of a batch.

    Notes
    -----
    A compiled model runs at once with one set of shapes, in memory that all processes share; for
    others each process loads and compiles its network again.
    """
    for size in settings.sizes:
        fixed = model.reshape({s.name: (size, *(s.shape or ())[1:]) for s in model.inputs})
        try:
            path = folder / settings.file_of(size)
            fixed.save(path, targets=export.targets, sign=export.sign)
        finally:
            fixed.close()


def _save(
    model: Model,
    folder: Path,
    export: TritonExport,
    settings: InstanceSettings,
    source: Path | None,
) -> InstanceSettings:
    """Write the model to the version's folder; the settings by which it is loaded."""
    try:
        model.save(folder / MODEL_FILE, targets=export.targets, sign=export.sign)
    except (InvalidArgumentError, UnimplementedError):
        # A batch that was opened here is not in the file.
        if source is None or export.options.max_batch:
            raise
        options = {**settings.load_options, **export.source_options}
        return replace(settings, file=_copy(model, source, folder), load_options=options)
    return settings


def _copy(model: Model, source: Path, folder: Path) -> str:
    """Copy the model's own file and its data files under generated names; return the first name.

    Notes
    -----
    The server imports Python modules from this folder, so a name from the model could put code
    there: a module, a compiled one, or a kernel pack.
    """
    name = f"model{source.suffix}"
    if source.suffix.lower() in all_suffixes():
        raise InvalidArgumentError(
            "the model cannot be compiled ahead of time, and Python would import a copy of it",
            where=str(source),
            expected="a suffix of models, such as .onnx",
            actual=repr(source.suffix),
            fix="Rename the file, or give shapes",
        )
    # The model's own file is one of them if its tensors lie in the file itself.
    data_files = sorted({Path(file).resolve() for file in model.provenance.data_files})
    if not data_files:
        shutil.copyfile(source, folder / name)
        return name
    if not model.provenance.are_all:
        raise InvalidArgumentError(
            "the model cannot be compiled ahead of time, and its data files cannot be renamed, as "
            "a plugin's front-end reads them",
            where=str(source),
            actual=", ".join(map(str, data_files[:_MOST_NAMED])),
            fix="Give shapes, or keep the elements in the model's file",
        )
    names = {path: f"model.data.{number}" for number, path in enumerate(data_files)}
    request = model.provenance.request
    chosen = None if request is None else request.options.front_end
    file = open_model_file(source)
    origin = ModelOrigin.find(file, source, model.runtime.registry, chosen)
    (folder / name).write_bytes(origin.front_end.rename_other_files(file, names))
    for path, new_name in names.items():
        shutil.copyfile(path, folder / new_name)
    return name


_MOST_NAMED = 3
