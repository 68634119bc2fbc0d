"""Measures models, backends and options beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import click

from armpy.cli.inputs.request import InputRequest
from armpy.cli.inputs.values import array_files
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import (
    EXIT_PROBLEMS,
    check_outputs,
    request_of,
)
from armpy.cli.printer import print_json
from armpy.cli.progress import ProgressLine
from armpy.cli.registry import find_origin, parse_backend_options, registry_of, split_option
from armpy.errors import suggest_path
from armpy.types import REFERENCE_BACKEND_ID
from armpy_tools.benchmark import BenchmarkResult, Plan, Subject, benchmark
from armpy_tools.cli.benchmark.page import write_page
from armpy_tools.cli.benchmark.report import print_benchmark
from armpy_tools.devices.every_device import every_device

_EXIT_INTERRUPTED = 130
_MOST_SUBJECTS = 100


def benchmark_command(
    context: click.Context,
    /,
    models: tuple[str, ...],
    seconds: float,
    runs: int | None,
    warm_up_s: float,
    processes: int,
    baseline: int,
    with_layers: bool,
    inputs: InputRequest,
    page_path: str | None,
    as_json: bool,
    **choices: Any,  # Any: what to measure, by the names of the options
) -> None:
    """Measure what each MODEL takes to load, to run first, and to run."""
    files = array_files(inputs)
    check_outputs({"--html": page_path}, [*models, *files])
    for path in files:
        if not Path(path).is_file():
            raise click.UsageError(f"--input: there is no file '{path}'. {suggest_path(path)}")
    subjects = subjects_of(models, inputs=inputs, **choices)
    if baseline > len(subjects):
        raise click.UsageError(
            f"--baseline: there is no such row. Expected 1 to {len(subjects)}; got {baseline}."
        )
    plan = Plan(seconds, runs, warm_up_s, processes, inputs.seed, baseline - 1, with_layers)
    result = _measured(subjects, plan)
    if page_path is not None:
        write_page(page_path, result)
    if as_json:
        print_json(result.as_document())
    else:
        print_benchmark(result)
        if page_path is not None:
            click.echo(f"written: {page_path}")
    if result.interrupted:
        context.exit(_EXIT_INTERRUPTED)
    if any(subject.failure for subject in result.subjects):
        context.exit(EXIT_PROBLEMS)


def _measured(subjects: Sequence[Subject], plan: Plan) -> BenchmarkResult:
    """Measure, and show how far it is."""
    line = ProgressLine()
    try:
        return benchmark(subjects, plan, on_progress=lambda step: line.show(step.what))
    finally:
        line.show("")


def subjects_of(
    models: Sequence[str],
    *,
    backend_lists: Sequence[tuple[str, ...]],
    takes_every_device: bool,
    threads: Sequence[int],
    callers: Sequence[int],
    batch: Sequence[int],
    variants: Sequence[str],
    peers: Sequence[str],
    inputs: InputRequest,
    **loading: Any,  # Any: as they go to `request_of`
) -> list[Subject]:
    """Every combination of the settings to measure.

    Raises
    ------
    click.UsageError
        If options do not go together.
    InvalidArgumentError
        If a backend or front-end has no such option.
    """
    if takes_every_device and (backend_lists or variants):
        raise click.UsageError("--every-device does not go with --backends or --variant.")
    request = request_of(models[0], **loading)
    load_options = _load_options(request)
    requests = inputs.for_each_set() or [inputs]
    shared = _ways(threads, callers, batch)
    lists: Sequence[tuple[str, ...] | None] = backend_lists or [None]
    configurations = (
        _devices(request)
        if takes_every_device
        else [(names, *variant) for names in lists for variant in _variants(request, variants)]
    )
    entries: list[Subject] = []
    for model in models:
        for (names, name, options), ways, one in product(configurations, shared, requests):
            entries.append(
                Subject(
                    model,
                    backends=names,
                    variant=name,
                    backend_options=options,
                    load_options=load_options,
                    **_way(ways, one),
                )
            )
        for peer, ways, one in product(peers, shared, requests):
            entries.append(Subject(model, engine=peer, **_way(ways, one)))
    if len(entries) > _MOST_SUBJECTS:
        raise click.UsageError(
            f"These are {len(entries)} combinations; at most {_MOST_SUBJECTS} are measured at once."
        )
    return entries


def _ways(
    threads: Sequence[int], callers: Sequence[int], batch: Sequence[int]
) -> list[tuple[int | None, int | None, int | None]]:
    """Every combination of numbers of threads and callers, and sizes of batches."""
    any_threads: Sequence[int | None] = threads or [None]
    any_batch: Sequence[int | None] = batch or [None]
    return [*product(any_threads, callers or [1], any_batch)]


def _way(ways: Sequence[int | None], inputs: InputRequest) -> dict[str, Any]:  # Any: fields by name
    """Fields of a subject that peers have as well."""
    num_threads, callers, batch = ways
    return {
        "num_threads": num_threads,
        "callers": callers,
        "batch": batch,
        "shapes": inputs.shapes,
        "size": inputs.size,
        "inputs": inputs.arrays,
        "quantize_inputs": inputs.quantize_inputs,
    }


def _load_options(request: CliLoadRequest) -> dict[str, object]:
    """Return the other options of `armpy.load`, without defaults."""
    options = request.options.unusual()
    if request.front_end_options:
        options["front_end_options"] = find_origin(request, registry_of(request)).options
    if request.dynamic_backends_path:
        options["dynamic_backends_path"] = request.dynamic_backends_path
    return options


def _devices(
    request: CliLoadRequest,
) -> list[tuple[tuple[str, ...], str, Mapping[str, Mapping[str, object]]]]:
    """Every device: its backend before CpuRef, and the options that choose it, with their name."""
    return [
        (
            tuple(dict.fromkeys((choice.backend, REFERENCE_BACKEND_ID))),
            *_variants(request, choice.options)[-1],
        )
        for choice in every_device(request.dynamic_backends_path)
    ]


def _variants(
    request: CliLoadRequest, variants: Sequence[str]
) -> list[tuple[str, Mapping[str, Mapping[str, object]]]]:
    """Options of backends, with the names of variants; as they are, first."""
    if not (variants or request.backend_options):
        return [("", {})]
    registry = registry_of(request)
    variant_options: list[tuple[str, Mapping[str, Mapping[str, object]]]] = []
    for variant in ("", *variants):
        texts = [text.strip() for text in variant.split(",") if text.strip()]
        chosen = {o[:2]: o for o in (split_option(text, "--variant") for text in texts)}
        if variant and len(chosen) < len(texts):
            raise click.UsageError(f"--variant {variant}: an option is given twice.")
        usual = {o[:2]: o for o in map(split_option, request.backend_options)}
        if len(usual) < len(request.backend_options):
            raise click.UsageError("--backend-option: an option is given twice.")
        options = parse_backend_options(registry, [*(usual | chosen).values()])
        variant_options.append((", ".join(texts), options))
    return variant_options
