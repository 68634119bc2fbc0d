"""Many pictures, side by side or in batches, and the table of findings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from typing import Any

import click

from armpy.cli.load_request import CliLoadRequest
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.model import Model
from armpy_tools.cli.pictures.jobs.document_spool import DocumentSpool
from armpy_tools.cli.pictures.jobs.job_facts import job_facts
from armpy_tools.cli.pictures.jobs.progress_lines import ProgressLines
from armpy_tools.cli.pictures.jobs.result_file import ResultFile
from armpy_tools.cli.pictures.jobs.result_folder import ResultFolder
from armpy_tools.cli.pictures.one_picture import PictureRequest
from armpy_tools.cli.pictures.output_path import is_result_file
from armpy_tools.cli.pictures.picture_files import PictureFiles
from armpy_tools.cli.pictures.picture_result import EarlierPart, PictureOutcome
from armpy_tools.cli.pictures.pictures_report import PicturesReport, Sink
from armpy_tools.cli.pictures.pictures_table import pictures_document, print_pictures
from armpy_tools.cli.pictures.run_pictures import PictureRun
from armpy_tools.pictures.find import find_pictures
from armpy_tools.pictures.ground_truth import Truths, read_truths


@dataclass(frozen=True, slots=True)
class PicturesRequest:
    """Request to run a model on many pictures.

    Parameters
    ----------
    load_request : CliLoadRequest
    given : tuple of str
        Files, folders and patterns.
    truth : str, optional
    batch : int, optional
    options : dict
        Fields of `PictureRequest`.
    resume : bool
        Whether pictures with a whole result file are skipped.
    """

    load_request: CliLoadRequest
    given: tuple[str, ...]
    truth: str | None
    batch: int | None
    options: dict[str, Any]  # Any: fields of PictureRequest
    resume: bool = False


def run_on_pictures(
    request: PicturesRequest, load: Callable[[], Model], spool: DocumentSpool | None = None
) -> PicturesReport:
    """Run on many pictures, and write results as they come.

    Parameters
    ----------
    request : PicturesRequest
    load : callable
    spool : DocumentSpool, optional
        Gets every result.

    Raises
    ------
    InvalidArgumentError
        If there are no pictures, or results to be skipped were made otherwise.
    """
    truths = None if request.truth is None else read_truths(request.truth)
    paths = _paths(request, truths)
    run_request = PictureRequest(image=paths[0], **request.options)
    files = PictureFiles(
        paths, run_request.output, run_request.save_pictures, run_request.min_score
    )
    labels = [""] * len(paths) if truths is None else truths.labels_of(paths)
    left, earlier = paths, EarlierPart()
    with ExitStack() as stack:
        output: ResultFile | ResultFolder | None = None
        if is_result_file(run_request.output):
            target = str(run_request.output)
            output = ResultFile(target, run_request.top, has_truth=any(labels))
            stack.enter_context(output)
        elif run_request.output is not None:
            facts = job_facts(request.load_request, request.options, request.batch)
            output = ResultFolder(run_request.output, files.names, facts)
            if request.resume:
                left, earlier = output.find_earlier(paths, labels)
                text = f"going on after {earlier.done:,} of {len(paths):,} pictures"
                click.echo(f"armpy: {text}", err=True)
        lines = ProgressLines(sys.stderr, earlier.done, len(paths))
        done = earlier.done

        def store(outcomes: Sequence[PictureOutcome]) -> None:
            """Hand results on; each is there before it is counted."""
            nonlocal done
            if output is not None:
                output.store(outcomes)
            if spool is not None:
                spool.store(outcomes)
            done += len(outcomes)
            lines.show(done)

        loaded = stack.enter_context(load())
        run = PictureRun(
            loaded,
            run_request,
            batch=request.batch,
            truths=truths,
            sink=Sink(files, store),
            num_threads=request.load_request.options.num_threads,
        )
        try:
            report = run.run(left, earlier)
        except BaseException:
            if isinstance(output, ResultFolder) and done:
                _report_stopped(done, len(paths))
            raise
        if isinstance(output, ResultFile):
            output.finish()
    return replace(report, files=_written(report, files, run_request.output))


def _paths(request: PicturesRequest, truths: Truths | None) -> list[str]:
    """Paths of the pictures."""
    if request.given:
        return find_pictures(request.given)
    paths = truths.pictures if truths is not None else []
    if not paths:
        option = "--truth" if request.truth is not None else "--batch"
        raise InvalidArgumentError(
            "there are no pictures", where=option, fix="Name files, folders or patterns"
        )
    return paths


def _report_stopped(done: int, total: int) -> None:
    """Print what a job leaves that stops before its end, and how to resume it."""
    state = f"stopped: the results of {done:,} of {total:,} pictures are kept"
    click.echo(f"armpy: {state}; the same command with --resume goes on", err=True)


def _written(report: PicturesReport, files: PictureFiles, output: str | None) -> tuple[str, ...]:
    """Paths of the written files; of many pictures' own files the folders alone."""
    paths: tuple[str, ...] = files.folders
    is_folder = output is not None and not is_result_file(output)
    if len(report.pictures) == report.total and not is_folder:
        paths = tuple(path for picture in report.pictures for path in picture.files)
    whole = (output,) if output is not None and is_result_file(output) else ()
    return (*report.files, *paths, *whole)


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
    with DocumentSpool() if as_json else nullcontext() as spool:
        report = run_on_pictures(request, load, spool)
        for hint in dict.fromkeys(report.hints):
            click.echo(f"armpy: hint: {hint}", err=True)
        if spool is not None:
            spool.print_in(pictures_document(request.load_request.model, report))
        else:
            print_pictures(report, shown=shown)
    return report
