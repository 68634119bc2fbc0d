"""Many pictures, side by side or in batches, and the table of findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from armpy.cli.load_request import CliLoadRequest
from armpy.cli.printer import print_json
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.model import Model
from armpy_tools.cli.pictures.one_picture import PictureRequest
from armpy_tools.cli.pictures.output_path import is_result_file
from armpy_tools.cli.pictures.picture_files import PictureFiles
from armpy_tools.cli.pictures.picture_result import PicturesReport
from armpy_tools.cli.pictures.pictures_table import pictures_document, print_pictures
from armpy_tools.cli.pictures.result_file import write_results
from armpy_tools.cli.pictures.run_pictures import PictureRun
from armpy_tools.pictures.find import find_pictures


@dataclass(frozen=True, slots=True)
class PicturesRequest:
    """Request to run a model on many pictures.

    Parameters
    ----------
    load_request : CliLoadRequest
    given : tuple of str
        Files, folders and patterns.
    batch : int, optional
    options : dict
        Fields of `PictureRequest`.
    """

    load_request: CliLoadRequest
    given: tuple[str, ...]
    batch: int | None
    options: dict[str, Any]  # Any: fields of PictureRequest


def run_on_pictures(request: PicturesRequest, load: Callable[[], Model]) -> PicturesReport:
    """Run on many pictures, and write their results.

    Parameters
    ----------
    request : PicturesRequest
    load : callable

    Raises
    ------
    InvalidArgumentError
        If there are no pictures.
    """
    if not request.given:
        raise InvalidArgumentError(
            "there are no pictures", where="--batch", fix="Name files, folders or patterns"
        )
    paths = find_pictures(request.given)
    run_request = PictureRequest(image=paths[0], **request.options)
    output = run_request.output
    files = PictureFiles(paths, output, run_request.save_pictures, run_request.min_score)
    with load() as loaded:
        run = PictureRun(
            loaded,
            run_request,
            batch=request.batch,
            files=files,
            num_threads=request.load_request.options.num_threads,
        )
        report = run.run(paths)
    written = (*report.files, *files.folders)
    if output is not None and is_result_file(output):
        write_results(output, report.pictures, run_request.top)
        written = (*written, output)
    return replace(report, files=written)


def show_pictures(
    request: PicturesRequest, load: Callable[[], Model], *, shown: int, as_json: bool
) -> PicturesReport:
    """Run on many pictures and print what came of it.

    Parameters
    ----------
    request : PicturesRequest
    load : callable
    shown : int
        Classes that a table lists.
    as_json : bool
    """
    report = run_on_pictures(request, load)
    for hint in dict.fromkeys(report.hints):
        click.echo(f"armpy: hint: {hint}", err=True)
    if as_json:
        print_json(pictures_document(request.load_request.model, report))
    else:
        print_pictures(report, shown=shown)
    return report
