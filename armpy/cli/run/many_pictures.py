"""Many pictures, side by side or in batches, and the table of what was found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import click

from armpy.cli.load_request import CliLoadRequest
from armpy.cli.pictures.find import find_pictures
from armpy.cli.pictures.ground_truth import Truths, read_truths
from armpy.cli.run.jobs.document_spool import DocumentSpool
from armpy.cli.run.jobs.job_facts import job_facts
from armpy.cli.run.jobs.job_output import JobOutput
from armpy.cli.run.jobs.progress_lines import ProgressLines
from armpy.cli.run.output_path import is_result_file
from armpy.cli.run.picture_files import PictureFiles
from armpy.cli.run.picture_result import EarlierPart, PictureOutcome
from armpy.cli.run.pictures_report import PicturesReport, Sink
from armpy.cli.run.pictures_table import pictures_document, print_pictures
from armpy.cli.run.run_model import RunRequest
from armpy.cli.run.run_pictures import PictureRun
from armpy.errors import InvalidArgumentError
from armpy.model import Model


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
        Fields of `RunRequest`.
    resume : bool
        Whether a job that has stopped is taken up.
    """

    load_request: CliLoadRequest
    given: tuple[str, ...]
    truth: str | None
    batch: int | None
    options: dict[str, Any]  # Any: fields of RunRequest
    resume: bool = False


def run_on_pictures(
    request: PicturesRequest, load: Callable[[], Model], spool: DocumentSpool | None = None
) -> PicturesReport:
    """Run on many pictures, and write what is to be written as it comes.

    Parameters
    ----------
    request : PicturesRequest
    load : callable
    spool : DocumentSpool, optional
        Gets every result.

    Raises
    ------
    InvalidArgumentError
        If there are no pictures, or what has stopped was another job.
    """
    truths = None if request.truth is None else read_truths(request.truth)
    paths = _paths(request, truths)
    run_request = RunRequest(image=paths[0], **request.options)
    files = PictureFiles(run_request.output, run_request.save_pictures, run_request.min_score)
    earlier = EarlierPart()
    with ExitStack() as stack:
        output = None
        if run_request.output is not None:
            labels = [] if truths is None else truths.labels_of(paths)
            load_request, batch = request.load_request, request.batch
            facts = job_facts(load_request, paths, labels, request.options, batch)
            output = JobOutput(
                run_request.output, run_request.top, has_truth=any(labels), facts=facts
            )
            stack.enter_context(output)
            earlier = _taken_up(output, paths, files, is_resumed=request.resume)
            stack.enter_context(_told_when_stopped(output, len(paths)))
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
        report = run.run(paths, earlier)
        if output is not None:
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


def _taken_up(
    output: JobOutput, paths: Sequence[str], files: PictureFiles, *, is_resumed: bool
) -> EarlierPart:
    """The part of a job that is done already, of which is told."""
    if not is_resumed:
        output.check_new()
        return EarlierPart()
    earlier = output.resume()
    for number, path in enumerate(paths[: earlier.done]):
        if number not in earlier.unusable:
            files.skip(path)
    text = "there is nothing to go on with: beginning with the first picture"
    if earlier.done:
        text = f"going on behind {earlier.done:,} of {len(paths):,} pictures"
    click.echo(f"armpy: {text}", err=True)
    return earlier


@contextmanager
def _told_when_stopped(output: JobOutput, total: int) -> Iterator[None]:
    """Say what is kept, and how to go on, when a job stops before its end, whatever the reason."""
    try:
        yield
    except BaseException:
        if output.num_kept:
            kept = f"stopped: the results of {output.num_kept:,} of {total:,} pictures are kept"
            click.echo(f"armpy: {kept}; the same command with --resume goes on", err=True)
        raise


def _written(report: PicturesReport, files: PictureFiles, output: str | None) -> tuple[str, ...]:
    """Paths of what was written; of many pictures' own files the folders alone."""
    each: tuple[str, ...] = files.folders
    if len(report.pictures) == report.total:
        each = tuple(path for picture in report.pictures for path in picture.files)
    whole = (output,) if output is not None and is_result_file(output) else ()
    return (*report.files, *each, *whole)


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
