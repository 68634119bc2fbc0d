"""Runs a model as the command line says: on random numbers, arrays, or one picture."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import DEFAULT_TOP, check_outputs
from armpy.cli.printer import print_json
from armpy.cli.run.report import print_run, run_document, show_hints
from armpy.cli.run.run_model import RunRequest, run_model
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.model import Model


def run(
    load_request: CliLoadRequest,
    *,
    pictures: tuple[str, ...],
    images: tuple[str, ...],
    top: int | None,
    as_json: bool,
    compile: str | None,
    **options: Any,  # Any: click hands over the fields of RunRequest by name
) -> None:
    """Run MODEL on a picture, on arrays, or on random numbers."""
    picture = _only_picture([*pictures, *images])
    output = options["output"]
    if output is not None and Path(output).is_file():
        raise InvalidArgumentError(f"'{output}' is a file", where="--output", expected="a folder")
    if output is not None:
        check_outputs({"--output": output}, [load_request.model, picture])
    if compile is None:
        measures = options["repeat"] is not None
        is_chosen = load_request.options.backends is not None or load_request.backend_options
        is_other = as_json or measures or output is not None or is_chosen
        compile = compile_choice(is_answer=not is_other)
    request = RunRequest(
        image=picture,
        top=top or DEFAULT_TOP,
        **options,
    )
    with load_model(load_request.with_options(compile=compile), may_be_kept=True) as loaded:
        if picture is not None and takes_several(loaded):
            raise InvalidArgumentError(
                "the model takes several pictures together", where=picture, fix="Use armpy pictures"
            )
        report = run_model(loaded, request)
        show_hints(report.hints)
        if as_json:
            print_json(run_document(load_request.model, report))
        else:
            print_run(report)
        finish_compiling(loaded)


def _only_picture(paths: list[str]) -> str | None:
    """The picture that the command line names, if any."""
    if not paths:
        return None
    if len(paths) > 1 or os.path.isdir(paths[0]):
        raise InvalidArgumentError(
            "the command takes one picture",
            where="PICTURE or --image",
            expected="a file",
            actual=", ".join(paths[:3]),
            fix="Use armpy pictures",
        )
    return paths[0]


def takes_several(model: Model) -> bool:
    """Return whether a model takes several pictures together, and no other number of them."""
    shape = model.inputs[0].shape if len(model.inputs) == 1 else None
    return shape is not None and len(shape) > 0 and (shape[0] or 1) > 1


def compile_choice(*, is_answer: bool) -> str:
    """Choose a value of `armpy.load`'s ``compile`` for a command that does not say it.

    `is_answer` is whether it gives one answer of whatever backend, and measures nothing. Programs
    that read the answer are to get the same one each time, to the last bit.
    """
    is_for_people = is_answer and sys.stdout is not None and sys.stdout.isatty()
    return "background" if is_for_people else "wait"


def finish_compiling(model: Model) -> None:
    """Let background compilations end, or the next run begins with them."""
    if not model.handle.is_compiling:
        return
    if sys.stdout is not None:
        sys.stdout.flush()  # the answer, before anything is waited for
    if sys.stderr is not None:
        text = "compiling for the next time (Ctrl-C leaves the rest to that)"
        print(f"armpy: {text}", file=sys.stderr, flush=True)
    tiers = model.handle.loaded.tiers
    assert tiers is not None  # as something is compiled
    try:
        tiers.wait()
    except (KeyboardInterrupt, ArmpyError):
        return  # the answer is there, the compiled parts are stored, and the log has the error
