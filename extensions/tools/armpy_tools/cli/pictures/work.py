"""Runs a model on one picture or many, and writes files of results."""

from __future__ import annotations

from typing import Any

import click

from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import DEFAULT_TOP, EXIT_PROBLEMS
from armpy.cli.run.work import compile_choice, finish_compiling, takes_several
from armpy.model import Model
from armpy_tools.cli.pictures.many_pictures import PicturesRequest, show_pictures
from armpy_tools.cli.pictures.one_picture import PictureRequest, show_one
from armpy_tools.cli.pictures.output_path import check_output, is_result_file
from armpy_tools.pictures.find import is_one_file


def run(
    load_request: CliLoadRequest,
    *,
    pictures: tuple[str, ...],
    images: tuple[str, ...],
    batch: int | None,
    top: int | None,
    as_json: bool,
    compile: str | None,
    **options: Any,  # Any: click hands over the fields of PictureRequest by name
) -> None:
    """Run MODEL on PICTURES, on arrays, or on random numbers; write files of results."""
    paths = [*pictures, *images]
    output = options["output"]
    if output is not None:
        check_output(output)
    request_options = {**options, "top": top or DEFAULT_TOP}
    is_table = batch is not None or len(paths) > 1
    is_table = is_table or (bool(paths) and not _is_plain(paths, output))
    if compile is None:
        measures = options["repeat"] is not None
        is_chosen = load_request.options.backends is not None or load_request.backend_options
        is_other = is_table or as_json or measures or output is not None or is_chosen
        compile = compile_choice(is_answer=not is_other)
    load_request = load_request.with_options(compile=compile)

    def load() -> Model:
        return load_model(load_request, may_be_kept=True)

    if not is_table:
        request = PictureRequest(image=paths[0] if paths else None, **request_options)
        with load() as loaded:
            if not paths or not takes_several(loaded):
                show_one(load_request.model, loaded, request, as_json=as_json)
                finish_compiling(loaded)
                return
    pictures_request = PicturesRequest(load_request, tuple(paths), batch, request_options)
    table = show_pictures(pictures_request, load, shown=top or 1, as_json=as_json)
    if table.failed:
        click.get_current_context().exit(EXIT_PROBLEMS)


def _is_plain(paths: list[str], output: str | None) -> bool:
    """Return whether one picture is described in detail."""
    return is_one_file(paths) and not is_result_file(output)
