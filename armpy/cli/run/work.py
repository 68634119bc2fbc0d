"""Runs a model as the command line says: on random numbers, arrays, one picture, or many."""

from __future__ import annotations

import sys
from typing import Any

import click

from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import EXIT_PROBLEMS
from armpy.cli.pictures.find import is_one_file
from armpy.cli.run.command import DEFAULT_TOP
from armpy.cli.run.output_path import check_output, is_result_file
from armpy.cli.run.report import show_run
from armpy.cli.run.run_model import RunRequest, run_model
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.model import Model


def run(
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
    compile: str | None,
    resume: bool,
    **options: Any,  # Any: click hands over the fields of RunRequest by name
) -> None:
    """Run MODEL on PICTURES, on arrays, or on random numbers."""
    given = [*pictures, *images]
    output = options["output"]
    if output is not None:
        check_output(output)
    request_options = {**options, "trace": profile, "top": top or DEFAULT_TOP}
    if resume and (output is None or is_result_file(output) or not (given or truth)):
        raise InvalidArgumentError(
            "there is nothing to go on with",
            where="--resume",
            expected="pictures, and a folder as --output, with a result file for each",
            fix="Name a folder; its files can be joined: cat FOLDER/*.json > results.jsonl",
        )
    is_table = truth is not None or batch is not None or len(given) > 1 or resume
    is_table = is_table or (bool(given) and not _is_plain(given, output))
    if compile is None:
        measures = profile is not None or options["repeat"] is not None
        is_chosen = load_request.options.backends is not None or load_request.backend_options
        is_other = is_table or as_json or measures or output is not None or is_chosen
        compile = _compile_choice(is_answer=not is_other)
    load_request = load_request.with_options(compile=compile)

    def load() -> Model:
        return load_model(
            load_request,
            quantize_inputs=quantize_inputs,
            profiling=profile is not None,
            may_be_kept=True,
        )

    if not is_table:
        request = RunRequest(image=given[0] if given else None, **request_options)
        with load() as loaded:
            if not given or not _takes_several(loaded):
                report = run_model(loaded, request)
                show_run(load_request.model, report, as_json=as_json)
                _finish_compiling(loaded)
                return
    # What reads pictures takes long to import, and a run on numbers has none.
    from armpy.cli.run import many_pictures  # noqa: PLC0415

    pictures_request = many_pictures.PicturesRequest(
        load_request, tuple(given), truth, batch, request_options, resume
    )
    table = many_pictures.show_pictures(pictures_request, load, shown=top or 1, as_json=as_json)
    if table.failed:
        click.get_current_context().exit(EXIT_PROBLEMS)


def _is_plain(given: list[str], output: str | None) -> bool:
    """Whether one picture is to be told in detail."""
    return is_one_file(given) and not is_result_file(output)


def _takes_several(model: Model) -> bool:
    """Whether a model takes several pictures together, and no other number of them."""
    shape = model.inputs[0].shape if len(model.inputs) == 1 else None
    return shape is not None and len(shape) > 0 and (shape[0] or 1) > 1


def _compile_choice(*, is_answer: bool) -> str:
    """Choose for a command that does not say it; a value of `armpy.load`'s ``compile``.

    Parameters
    ----------
    is_answer : bool
        Whether the command gives one answer of whatever backend, and measures nothing.

    Notes
    -----
    Programs that read the answer are to get the same one each time, to the last bit.
    """
    is_for_people = is_answer and sys.stdout is not None and sys.stdout.isatty()
    return "background" if is_for_people else "wait"


def _finish_compiling(model: Model) -> None:
    """Let what is compiled in the background come to its end, or the next run begins with it."""
    if not model.handle.is_compiling:
        return
    if sys.stdout is not None:
        sys.stdout.flush()  # the answer, before anything is waited for
    if sys.stderr is not None:
        text = "compiling for the next time (Ctrl-C leaves the rest to that)"
        print(f"armpy: {text}", file=sys.stderr, flush=True)
    try:
        model.handle.loaded.wait_compiled()
    except KeyboardInterrupt:
        return  # the answer is there, and what has been compiled is kept
    except ArmpyError:
        return  # the log has told it, and the answer is there
