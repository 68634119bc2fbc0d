"""Many pictures, one after the other or in batches, and the table of what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from armpy.cli.pictures.find import find_pictures
from armpy.cli.pictures.ground_truth import read_truths
from armpy.cli.printer import print_json
from armpy.cli.run.picture_files import PictureFiles
from armpy.cli.run.pictures_table import pictures_document, print_pictures
from armpy.cli.run.run_model import RunRequest
from armpy.cli.run.run_pictures import PictureRun, PicturesReport
from armpy.errors import InvalidArgumentError
from armpy.model import Model


def run_on_pictures(
    load: Callable[[], Model],
    given: list[str],
    truth: str | None,
    batch: int | None,
    options: dict[str, Any],  # Any: fields of RunRequest
) -> PicturesReport:
    """Run on many pictures, and write what is to be written."""
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


def print_table(model: str, report: PicturesReport, *, shown: int, as_json: bool) -> None:
    """Print what a run on many pictures has shown."""
    for hint in dict.fromkeys(report.hints):
        click.echo(f"armpy: hint: {hint}", err=True)
    if as_json:
        print_json(pictures_document(model, report))
    else:
        print_pictures(report, shown=shown)
