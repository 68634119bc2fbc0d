"""The command ``run`` and its options."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from armpy.cli.load_request import CliLoadRequest, load_model
from armpy.cli.options import (
    EXIT_PROBLEMS,
    MODEL_FILE,
    OUTPUT,
    RUNS,
    Command,
    json_option,
    model_options,
    seed_option,
    verbosity_options,
)
from armpy.cli.pictures.option_decorator import picture_options
from armpy.cli.values import parse_trace, parsed

if TYPE_CHECKING:
    from armpy.cli.run.run_pictures import PicturesReport
    from armpy.model import Model

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415

_TOP = 5

_INPUT_OPTIONS = (
    click.argument("pictures", nargs=-1, metavar="[PICTURES]..."),
    click.option(
        "--image",
        "images",
        multiple=True,
        metavar="PICTURE",
        help="The same as PICTURES: a file, a folder, or a pattern; may be repeated.",
    ),
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="[NAME=]FILE.npy",
        help="An array for one input; once per input. An only input needs no name.",
    ),
    click.option(
        "--batch",
        type=click.IntRange(min=1),
        help="Give the model so many pictures together, if it takes any number.",
    ),
    picture_options,
    seed_option(),
    click.option(
        "--quantize-inputs", is_flag=True, help="Quantise float arrays given for quantised inputs."
    ),
)

_ANSWER_OPTIONS = (
    click.option("--labels", type=MODEL_FILE, help="Names of the classes, one per line."),
    click.option(
        "--top",
        type=click.IntRange(min=1),
        help=f"How many classes to list.  [default: {_TOP}, 1 in a table of pictures]",
    ),
    click.option(
        "--softmax", is_flag=True, help="Turn scores that are no probabilities into probabilities."
    ),
    click.option(
        "--min-score",
        type=click.FloatRange(0, 1),
        default=0.3,
        show_default=True,
        help="Least score of an object or a person that counts.",
    ),
    click.option(
        "--truth",
        metavar="FILE.csv|folders",
        help="What the pictures show: a file with a picture and its label in each line, or the "
        "folder that each is in. Tells how often the model is right.",
    ),
    click.option(
        *OUTPUT,
        type=click.Path(writable=True),
        help="Write the results to FILE.csv, FILE.jsonl or FILE.npz; each output to a folder "
        "as .npy otherwise.",
    ),
    click.option(
        "--save-pictures",
        type=click.Path(file_okay=False, writable=True),
        help="Draw what was found (regions, boxes, key points, classes) on the pictures, and "
        "write them to this folder.",
    ),
    click.option(
        *RUNS,
        "repeat",
        type=click.IntRange(min=1),
        help="Time so many runs, after one that is not timed.",
    ),
    click.option(
        "--profile",
        is_flag=False,
        flag_value="",
        metavar="[FILE.json]",
        callback=parsed(parse_trace),
        help="List the slowest steps; FILE.json gets a trace for Chrome's and Perfetto's viewers.",
    ),
)


def _with_options(command: Command) -> Callable[..., object]:
    """Add the options of ``run`` itself."""
    decorated: Callable[..., object] = command
    for option in reversed((*_INPUT_OPTIONS, *_ANSWER_OPTIONS)):
        decorated = option(decorated)
    return decorated


@click.command(short_help="Run a model on pictures, on arrays, or on random numbers.")
@model_options
@_with_options
@json_option
@verbosity_options
def run(  # what is not a field of RunRequest
    load_request: CliLoadRequest,
    *,
    pictures: tuple[str, ...],
    images: tuple[str, ...],
    quantize_inputs: bool,
    profile: str | None,
    truth: str | None,
    batch: int | None,
    top: int | None,
    as_json: bool,
    **options: Any,  # Any: click hands over the fields of RunRequest by name
) -> None:
    """Run MODEL on PICTURES, on arrays, or on random numbers.

    PICTURES are files, folders, or patterns such as 'photos/*.jpg'. One file gets a report, several
    pictures get a table with a row for each; one that cannot be read is told in its row, and the
    exit code is 1 at the end.

    A picture is stretched to the size of the input, and turned grey for an input of one channel.
    Its pixels become what the input's type and quantisation say, normalised as the file's metadata
    say; for float inputs of a file without these, pixels become numbers from 0 to 1 unless --range,
    --mean or --std ask for others. Labels that are packed into the file name the classes unless
    --labels does.
    """
    from armpy.cli.run.report import show_run
    from armpy.cli.run.result_files import check_output
    from armpy.cli.run.run_model import RunRequest, run_model

    given = [*pictures, *images]
    output = options["output"]
    if output is not None:
        check_output(output)
    request_options = {**options, "trace": profile, "top": top or _TOP}
    is_table = truth is not None or batch is not None or len(given) > 1
    is_table = is_table or (bool(given) and not _is_plain(given, output))

    def load() -> Model:
        return load_model(
            load_request, quantize_inputs=quantize_inputs, profiling=profile is not None
        )

    if not is_table:
        request = RunRequest(image=given[0] if given else None, **request_options)
        with load() as loaded:
            if not given or not _takes_several(loaded):
                report = run_model(loaded, request)
                show_run(load_request.model, report, as_json=as_json)
                return
    table = _run_pictures(load, given, truth, batch, request_options)
    _print_pictures(load_request.model, table, shown=top or 1, as_json=as_json)
    if table.num_failed:
        click.get_current_context().exit(EXIT_PROBLEMS)


def _is_plain(given: list[str], output: str | None) -> bool:
    """Whether one picture is to be told in detail."""
    from armpy.cli.pictures.find import is_one_file
    from armpy.cli.run.result_files import is_result_file

    return is_one_file(given) and not is_result_file(output)


def _takes_several(model: Model) -> bool:
    """Whether a model takes several pictures together, and no other number of them."""
    shape = model.inputs[0].shape if len(model.inputs) == 1 else None
    return shape is not None and len(shape) > 0 and (shape[0] or 1) > 1


def _run_pictures(
    load: Callable[[], Model],
    given: list[str],
    truth: str | None,
    batch: int | None,
    options: dict[str, Any],  # Any: fields of RunRequest
) -> PicturesReport:
    """Run on many pictures, and write what is to be written."""
    from dataclasses import replace

    from armpy.cli.pictures.find import find_pictures
    from armpy.cli.pictures.ground_truth import read_truths
    from armpy.cli.run.picture_files import PictureFiles
    from armpy.cli.run.run_model import RunRequest
    from armpy.cli.run.run_pictures import PictureRun
    from armpy.errors import InvalidArgumentError

    truths = None if truth is None else read_truths(truth)
    paths = find_pictures(given) if given else truths.pictures if truths is not None else []
    if not paths:
        option = "--truth" if truth is not None else "--batch"
        raise InvalidArgumentError(
            "there are no pictures", where=option, fix="Name files, folders or patterns"
        )
    request = RunRequest(image=paths[0], **options)
    files = PictureFiles(request.output, request.top, request.save_pictures, request.min_score)
    with load() as loaded:
        run = PictureRun(loaded, request, batch=batch, truths=truths, sink=files.sink)
        report = run.run(paths)
    return replace(report, files=(*report.files, *files.finish(report.pictures)))


def _print_pictures(model: str, report: PicturesReport, *, shown: int, as_json: bool) -> None:
    """Print what a run on many pictures has shown."""
    from armpy.cli.printer import print_json
    from armpy.cli.run.pictures_table import pictures_document, print_pictures

    for hint in dict.fromkeys(report.hints):
        click.echo(f"armpy: hint: {hint}", err=True)
    if as_json:
        print_json(pictures_document(model, report))
    else:
        print_pictures(report, shown=shown)
