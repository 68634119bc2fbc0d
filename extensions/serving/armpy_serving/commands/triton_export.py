"""Puts models into a repository of Triton's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from armpy.cli.commands.compile import signer
from armpy.cli.inputs.complete import prepare_requested
from armpy.cli.inputs.request import InputRequest
from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import request_of
from armpy.cli.pictures.labels import read_labels
from armpy.cli.printer import Printer, print_json
from armpy.cli.registry import find_origin, parse_backend_options, registry_of, split_option
from armpy.core.dataclass import dataclass
from armpy.execution.setup.settings import DEFAULT_PROGRAM_CACHE_SIZE
from armpy.plugins.isolation.backend import check_isolated
from armpy_serving.triton import (
    EnsembleOptions,
    InstanceSettings,
    TritonExport,
    TritonOptions,
    export_model,
)

if TYPE_CHECKING:
    from armpy.model import Model

_GO_ALONG = (
    "backends",
    "num_threads",
    "on_fallback",
    "preference",
    "affinity",
    "spread",
    "trusted_keys",
    "code",
)
"""Options of loading that hold where the model is served; the others are done with by then, but
for those of `_source_options`."""

_TRITON_OPTIONS = (
    "instances",
    "max_batch",
    "queue_delay_us",
    "max_queue",
    "timeout_us",
    "timeout_action",
    "own_timeout",
)
"""Options of the command that `TritonOptions` takes under the same names."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Request to export a model, as the command line says it."""

    repository: str
    options: dict[str, Any]  # Any: as `TritonOptions` takes them
    """Options of `TritonOptions`, but for name and labels."""
    name: str | None
    labels: str | None


def export_command(
    models: tuple[str, ...],
    output: str,
    name: str | None,
    labels: str | None,
    ensemble: bool,
    mean: tuple[float, ...] | None,
    std: tuple[float, ...] | None,
    top: int,
    isolate: tuple[str, ...],
    isolate_memory_mb: int | None,
    memory_limit_mb: int | None,
    key: str | None,
    inputs: InputRequest,
    as_json: bool,
    **given: Any,  # Any: options of exporting and of loading, by name
) -> None:
    """Put each MODEL into a repository of Triton's."""
    _check(models, name, ensemble, mean or std or top, inputs, given["max_batch"])
    if isolate_memory_mb is not None and not isolate:
        raise click.UsageError("--isolate-memory-mb is for --isolate.")
    options = {option: given.pop(option) for option in _TRITON_OPTIONS}
    targets, force = given.pop("targets"), given.pop("force")
    options["version"] = given.pop("model_version")
    around = EnsembleOptions(mean or (), std or (), top) if ensemble else None
    sign = None if key is None else signer(key)
    request = ExportRequest(output, options, name, labels)
    written: list[Path] = []
    for path in models:
        load_request = request_of(path, **given)
        settings = _settings(load_request, isolate, isolate_memory_mb, memory_limit_mb)
        # The shapes of every batch stay prepared until they are saved.
        with load_model(load_request, num_shapes=_num_shapes(inputs, options)) as model:
            for one in reversed(inputs.for_each_set()):
                prepare_requested(model, one)
            triton_options = TritonOptions(
                _name(request, path), labels=_labels(request, model), **options
            )
            of_source = _source_options(load_request)
            export = TritonExport(triton_options, settings, around, targets, sign, force, of_source)
            written += export_model(model, Path(output), export, Path(path))
    if as_json:
        print_json({"written": [str(place) for place in written]})
    else:
        for place in written:
            Printer().line(f"written: {place}")


def _check(
    models: tuple[str, ...],
    name: str | None,
    ensemble: bool,
    of_ensemble: object,
    inputs: InputRequest,
    max_batch: int,
) -> None:
    """Check which options go together."""
    if name is not None and len(models) > 1:
        raise click.UsageError(f"--name is for one MODEL; {len(models)} are given.")
    names = [_stem(path) for path in models]
    twice = next((repeated for repeated in names if names.count(repeated) > 1), None)
    if twice is not None:
        raise click.UsageError(f"Two models would be called '{twice}'; export them one by one.")
    if of_ensemble and not ensemble:
        raise click.UsageError("--mean, --std and --top are for --ensemble.")
    if inputs.says_shapes and max_batch:
        option = "--shape" if inputs.shape_sets else "--size"
        raise click.UsageError(f"{option} and --max-batch cannot be given together.")


def _num_shapes(inputs: InputRequest, options: dict[str, Any]) -> int:
    """Return how many shapes have to stay prepared."""
    return max(
        len(inputs.shape_sets),
        int(options["max_batch"]).bit_length() + 1,
        DEFAULT_PROGRAM_CACHE_SIZE,
    )


def _stem(path: str) -> str:
    """A file's name without its suffix."""
    return Path(path).stem


def _name(request: ExportRequest, path: str) -> str:
    """Return the clients' name of a model."""
    return _stem(path) if request.name is None else request.name


def _labels(request: ExportRequest, model: Model) -> tuple[str, ...]:
    """Labels of the first output's classes."""
    if request.labels is not None:
        labels, count = read_labels(request.labels), (model.outputs[0].shape or (None,))[-1]
        labels = labels if count is None else labels.for_classes(count)
        return tuple(map(labels.name, range(labels.count)))
    said = model.metadata.outputs.get(model.outputs[0].name)
    return () if said is None or said.label_kind == "value" else tuple(said.labels)


def _settings(
    request: CliLoadRequest,
    isolate: tuple[str, ...],
    isolate_memory_mb: int | None,
    memory_limit_mb: int | None,
) -> InstanceSettings:
    """Return how instances load the model."""
    unusual = request.options.unusual()
    options = {name: unusual[name] for name in _GO_ALONG if name in unusual}
    if "trusted_keys" in options:
        options["trusted_keys"] = [_absolute(key) for key in options["trusted_keys"]]
    if memory_limit_mb is not None:
        options["memory_limit_bytes"] = memory_limit_mb << 20
    if isolate:
        check_isolated(registry_of(request), isolate)
    texts = [split_option(text) for text in request.backend_options]
    of_backends = parse_backend_options(registry_of(request), texts) if texts else {}
    return InstanceSettings(
        "",
        options,
        isolation=isolate,
        backend_options=of_backends,
        dynamic_backends_path=tuple(map(os.path.abspath, request.dynamic_backends_path)),
        isolation_memory_bytes=None if isolate_memory_mb is None else isolate_memory_mb << 20,
    )


def _source_options(request: CliLoadRequest) -> dict[str, Any]:  # Any: as `armpy.load` has them
    """Return how the model's own file is read, which a prepared one knows by itself."""
    unusual = request.options.unusual()
    names = "signature", "front_end"
    options: dict[str, Any] = {n: unusual[n] for n in names if n in unusual}  # Any: as above
    if request.front_end_options:
        values = find_origin(request, registry_of(request)).options
        asked = [text.partition("=")[0] for text in request.front_end_options]
        options["front_end_options"] = {name: values[name] for name in asked}
    return options


def _absolute(key: str) -> str:
    """A key, or the path of one from wherever the server is started."""
    return os.path.abspath(key) if os.path.exists(key) else key
