"""``armpy benchmark``: measures models, backends and options beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from armpy.cli.load_request import CliLoadRequest, find_origin, parse_backend_options, registry_of
from armpy.cli.options import (
    BACKENDS,
    EXIT_PROBLEMS,
    MODEL_FILE,
    RUNS,
    SECONDS,
    THREADS,
    WRITABLE_FILE,
    check_outputs,
    json_option,
    loading_options,
    request_of,
    seed_option,
    shapes_option,
    verbosity_options,
)
from armpy.cli.values import FiniteRange, Shapes, parse_name_lists

if TYPE_CHECKING:
    from armpy.tools.benchmark import BenchmarkResult, Plan, Subject

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415

_EXIT_INTERRUPTED = 130
_MOST_SUBJECTS = 100
_PEERS = ("litert", "onnxruntime", "openvino")


def _counts(context: click.Context, param: click.Parameter, text: str | None) -> list[int]:
    """Numbers of 1 or more with commas between them."""
    if text is None:
        return []
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 0 < int(part) <= 1_000_000 for part in parts):
        raise click.BadParameter(
            f"'{text}': expected numbers of 1 or more with commas between them.", context, param
        )
    return list(dict.fromkeys(map(int, parts)))


_OPTIONS: Sequence[Callable[[Callable[..., object]], Callable[..., object]]] = (
    click.option(
        *BACKENDS,
        "backend_lists",
        multiple=True,
        metavar="A,B",
        callback=parse_name_lists,
        help="Ids in order of preference. Give it again for each list to measure beside: "
        "--backends NumbaAcc --backends CpuRef.",
    ),
    click.option(
        *THREADS,
        "threads",
        metavar="N,N",
        callback=_counts,
        help="For backends that have threads of their own; several are measured beside each other.",
    ),
    click.option(
        "--callers",
        metavar="N,N",
        callback=_counts,
        help="So many threads call the model at the same time.",
    ),
    click.option(
        "--batch",
        metavar="N,N",
        callback=_counts,
        help="Size of the first axis of every input.",
    ),
    shapes_option(
        "Shape of an input, such as x=1,224,224,3; may be repeated. A name that comes again "
        "begins a further set of shapes, which is measured beside."
    ),
    click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="ID.NAME=VALUE[,...]",
        help="Measure once more with these options of backends; may be repeated.",
    ),
    click.option(
        "--peer",
        "peers",
        multiple=True,
        type=click.Choice(_PEERS),
        help="Measure another engine beside, if it is installed; may be repeated.",
    ),
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="NAME=FILE.npy",
        help="An array for one input; the others are random.",
    ),
    seed_option(),
    click.option(
        *SECONDS,
        type=FiniteRange(min=0, min_open=True),
        default=3.0,
        show_default=True,
        metavar="SECONDS",
        help="Of warm runs, about, for each that is measured.",
    ),
    click.option(
        *RUNS, type=click.IntRange(min=1), help="So many warm runs of each instead of a time."
    ),
    click.option(
        "--warm-up",
        "warm_up_s",
        type=FiniteRange(min=0),
        default=0.2,
        show_default=True,
        metavar="SECONDS",
        help="Runs that do not count, in every process; one at least.",
    ),
    click.option(
        "--processes",
        type=click.IntRange(min=1, max=100),
        default=6,
        show_default=True,
        help="Measure all of it in so many fresh processes, one after the other.",
    ),
    click.option(
        "--baseline",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="NUMBER",
        help="Which row the others are compared with.",
    ),
    click.option("--layers", "with_layers", is_flag=True, help="Find out what limits each layer."),
    loading_options,
    click.option(
        "--csv", "csv_path", type=WRITABLE_FILE, help="Write a row for each to this file."
    ),
    click.option("--html", "page_path", type=WRITABLE_FILE, help="Write a page for browsers."),
    json_option,
    verbosity_options,
)


def _with_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options above, in their order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("benchmark", short_help="Measure models, backends and options beside each other.")
@click.argument("models", nargs=-1, required=True, type=MODEL_FILE, metavar="MODEL...")
@_with_options
@click.pass_context
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
    seed: int,
    csv_path: str | None,
    page_path: str | None,
    as_json: bool,
    **choices: Any,  # Any: what to measure, by the names of the options
) -> None:
    """Measure what each MODEL takes to load, to run first, and to run.

    Whatever is given several times is measured beside each other: models, --backends, --threads,
    --callers, --batch, --shape, --variant, --peer. Each has a process of its own. They take short
    turns in changing order, and all begins anew in fresh processes several times, so that the
    ratios hold: they come with intervals, of 95 %. Control-C stops, and prints what was measured.
    """
    from armpy.cli.benchmark.report import print_benchmark, write_csv
    from armpy.cli.printer import print_json
    from armpy.tools.benchmark import Plan

    arrays = [text.rpartition("=")[2] for text in choices["inputs"]]
    check_outputs({"--csv": csv_path, "--html": page_path}, [*models, *arrays])
    if page_path is not None:
        from armpy.tools.pages import render_page

        render_page("", [])  # tells what is missing before anything is measured
    subjects = subjects_of(models, **choices)
    if baseline > len(subjects):
        raise click.UsageError(f"--baseline {baseline}: there are {len(subjects)} rows.")
    plan = Plan(seconds, runs, warm_up_s, processes, seed, baseline - 1, with_layers)
    result = _measured(subjects, plan)
    written = [path for path in (csv_path, page_path) if path is not None]
    if csv_path is not None:
        write_csv(csv_path, result)
    if page_path is not None:
        from armpy.cli.benchmark.page import write_page

        write_page(page_path, result)
    if as_json:
        print_json(result.as_document())
    else:
        print_benchmark(result)
        for path in written:
            click.echo(f"written: {path}")
    if result.interrupted:
        context.exit(_EXIT_INTERRUPTED)
    if any(subject.failure for subject in result.subjects):
        context.exit(EXIT_PROBLEMS)


def _measured(subjects: Sequence[Subject], plan: Plan) -> BenchmarkResult:
    """Measure, and show how far it is."""
    from armpy.cli.benchmark.report import progress_bar
    from armpy.tools.benchmark import benchmark

    with progress_bar() as show:
        return benchmark(subjects, plan, on_progress=show)


def subjects_of(
    models: Sequence[str],
    *,
    backend_lists: Sequence[tuple[str, ...]],
    threads: Sequence[int],
    callers: Sequence[int],
    batch: Sequence[int],
    shape_sets: Sequence[Shapes],
    variants: Sequence[str],
    peers: Sequence[str],
    inputs: Sequence[str],
    **loading: Any,  # Any: as they go to `request_of`
) -> list[Subject]:
    """Every combination of what is to be measured.

    Raises
    ------
    click.UsageError
        If options do not go together.
    InvalidArgumentError
        If a backend or front-end has no such option.
    """
    from armpy.tools.benchmark import Subject

    _check(models, backend_lists, batch, shape_sets, inputs)
    request = request_of(models[0], **loading)
    arrays = _arrays(inputs)
    common = {"arrays": arrays, "load_options": _load_options(request)}
    shared = _ways(threads, callers, batch)
    lists: Sequence[tuple[str, ...] | None] = backend_lists or [None]
    found: list[Subject] = []
    for model in models:
        for names, ways, shapes, (name, options) in product(
            lists, shared, shape_sets or [{}], _variants(request, variants)
        ):
            way = _way(ways, shapes)
            found.append(
                Subject(
                    model,
                    backends=names,
                    variant=name,
                    backend_options=options,
                    **way,
                    **common,  # type: ignore[arg-type]  # both are as their names say
                )
            )
        for peer, ways, shapes in product(peers, shared, shape_sets or [{}]):
            found.append(Subject(model, engine=peer, arrays=arrays, **_way(ways, shapes)))
    if len(found) > _MOST_SUBJECTS:
        raise click.UsageError(
            f"These are {len(found)} combinations; at most {_MOST_SUBJECTS} are measured at once."
        )
    return found


def _ways(
    threads: Sequence[int], callers: Sequence[int], batch: Sequence[int]
) -> list[tuple[int | None, int | None, int | None]]:
    """Every combination of numbers of threads and callers, and sizes of batches."""
    any_threads: Sequence[int | None] = threads or [None]
    any_batch: Sequence[int | None] = batch or [None]
    return [*product(any_threads, callers or [1], any_batch)]


def _way(ways: Sequence[int | None], shapes: Shapes) -> dict[str, Any]:  # Any: fields by name
    """Fields of a subject that peers have as well."""
    num_threads, callers, batch = ways
    return {"num_threads": num_threads, "callers": callers, "batch": batch, "shapes": shapes}


def _check(
    models: Sequence[str],
    backend_lists: Sequence[tuple[str, ...]],
    batch: Sequence[int],
    shape_sets: Sequence[Shapes],
    inputs: Sequence[str],
) -> None:
    """Refuse what does not go together, and hint at what may be meant otherwise."""
    if batch and (shape_sets or inputs):
        other = "--shape" if shape_sets else "--input"
        raise click.UsageError(f"--batch does not go with {other}, which says it as well.")
    if shape_sets and inputs:
        raise click.UsageError("--shape does not go with --input, whose arrays have shapes.")
    if inputs and len(models) > 1:
        raise click.UsageError("--input goes with one model.")
    if len(backend_lists) == 1 and len(backend_lists[0]) > 1:
        each = " ".join(f"--backends {name}" for name in backend_lists[0])
        click.echo(
            f"armpy: hint: --backends {','.join(backend_lists[0])} is one order of preference; to "
            f"compare them: {each}",
            err=True,
        )


def _arrays(inputs: Sequence[str]) -> dict[str, str]:
    """Files by the inputs that they are for."""
    found: dict[str, str] = {}
    for text in inputs:
        name, _, path = text.rpartition("=")
        if not (name and path.endswith(".npy") and Path(path).is_file()):
            raise click.UsageError(f"--input {text}: expected NAME=FILE.npy, and a file there.")
        found[name] = str(Path(path).resolve())
    return found


def _load_options(request: CliLoadRequest) -> dict[str, object]:
    """What else `armpy.load` is told; what is as it is by itself is left out."""
    options = request.options.unusual()
    if request.front_end_options:
        options["front_end_options"] = find_origin(request, registry_of(request)).options
    if request.dynamic_backends_path:
        options["dynamic_backends_path"] = request.dynamic_backends_path
    return options


def _variants(
    request: CliLoadRequest, variants: Sequence[str]
) -> list[tuple[str, Mapping[str, Mapping[str, object]]]]:
    """Options of backends, with the names of variants; as they are, first."""
    from armpy.cli.load_request import split_option

    if not (variants or request.backend_options):
        return [("", {})]
    registry = registry_of(request)
    found: list[tuple[str, Mapping[str, Mapping[str, object]]]] = []
    for variant in ("", *variants):
        texts = [text.strip() for text in variant.split(",") if text.strip()]
        chosen = {split_option(text)[:2]: split_option(text) for text in texts}
        if variant and len(chosen) < len(texts):
            raise click.UsageError(f"--variant {variant}: an option is given twice.")
        usual = {o[:2]: o for o in map(split_option, request.backend_options)}
        if len(usual) < len(request.backend_options):
            raise click.UsageError("--backend-option: an option is given twice.")
        options = parse_backend_options(registry, [*(usual | chosen).values()])
        found.append((", ".join(texts), options))
    return found
