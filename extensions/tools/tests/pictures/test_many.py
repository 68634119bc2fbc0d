"""Many pictures: stored results, output, and workers."""

from __future__ import annotations

import gc
import io
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

from armpy import Model, ops  # noqa: E402
from armpy.graph.network import Network  # noqa: E402
from armpy_testing.command_line import armpy_command  # noqa: E402
from armpy_testing.models.networks import RELU, f32  # noqa: E402
from armpy_tools.cli.pictures.jobs.progress_lines import ProgressLines  # noqa: E402
from armpy_tools.cli.pictures.one_picture import PictureRequest  # noqa: E402
from armpy_tools.cli.pictures.picture_files import picture_names  # noqa: E402
from armpy_tools.cli.pictures.picture_result import PictureOutcome, PictureResult, ShownResults  # noqa: E402
from armpy_tools.cli.pictures.pictures_report import Sink  # noqa: E402
from armpy_tools.cli.pictures.run_pictures import PictureRun  # noqa: E402
from armpy_tools.pictures.picture_reader import InputPicture, in_order  # noqa: E402

from .picture_folders import LABELS, MODEL, make_pictures  # noqa: E402

Image = pytest.importorskip("PIL.Image")

COUNT = 400
AT_EITHER_END = 50
KEPT = {PictureResult: 2 * AT_EITHER_END, PictureOutcome: 0, InputPicture: 0}
"""Of many, besides those that are under way."""

UNDER_WAY = 30


def many(folder: Path, count: int = COUNT) -> list[str]:
    """Paths of one picture, under many names."""
    (folder / "pictures").mkdir()
    paths = [folder / "pictures" / f"{number:04}.png" for number in range(count)]
    Image.new("L", (4, 4), 51).save(paths[0])
    for path in paths[1:]:
        path.hardlink_to(paths[0])
    return [str(path) for path in paths]


def relu(shape: tuple[int | None, ...] = (1, 4, 4, 1)) -> Model:
    net = Network("relu")
    net.output("y", net.add(RELU, net.input("x", f32(*shape))))
    return Model(net)


@pytest.mark.slow
def test_what_is_kept_does_not_grow_with_the_pictures(tmp_path: Path) -> None:
    paths = many(tmp_path)
    most = dict.fromkeys(KEPT, 0)
    num_stored = 0

    def count(outcomes: object) -> None:
        nonlocal num_stored
        num_stored += 1
        if num_stored % 40 == 0:
            alive = gc.get_objects()
            for kind in KEPT:
                most[kind] = max(most[kind], sum(type(member) is kind for member in alive))

    report = PictureRun(relu(), PictureRequest(image=paths[0]), sink=Sink(store=count)).run(paths)
    assert num_stored == COUNT
    for kind, number in most.items():
        assert number <= KEPT[kind] + UNDER_WAY
    assert [picture.file for picture in report.pictures] == [*paths[:50], *paths[-50:]]
    assert (report.total, report.failed) == (COUNT, 0)


def test_no_more_is_read_than_a_few_pictures_ahead() -> None:
    begun: list[int] = []

    def make(number: int) -> int:
        begun.append(number)
        return number

    items = in_order(make, range(100), num_threads=3, ahead=5)
    assert [next(items) for _ in range(10)] == list(range(10))
    deadline = time.monotonic() + 10
    while len(begun) < 15 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert len(begun) == 15  # ten that were taken, and five that wait
    items.close()
    assert len(begun) == 15


def test_what_several_threads_make_comes_in_the_order_of_the_items() -> None:
    latest = threading.Event()

    def make(number: int) -> int:
        # The first one is made last: it waits for one that is made by another thread.
        if number == 0:
            assert latest.wait(30)
        if number == 3:
            latest.set()
        return number

    assert list(in_order(make, range(20), num_threads=2, ahead=6)) == list(range(20))


def test_an_error_is_raised_at_its_item_and_what_waits_is_left() -> None:
    def make(number: int) -> int:
        if number == 4:
            raise ValueError("the fourth")
        return number

    items = in_order(make, range(1000), num_threads=2, ahead=3)
    assert [next(items) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="the fourth"):
        next(items)


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the threads that run models, on a machine of two processors."""
    names: set[str] = set()
    run = Model.run

    def watched(model: Model, *arguments: object, **named: object) -> object:
        names.add(threading.current_thread().name.partition("_")[0])
        return run(model, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Model, "run", watched)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    return names


def test_who_reads_a_picture_runs_it_too(tmp_path: Path, callers: set[str]) -> None:
    paths = many(tmp_path, 8)
    PictureRun(relu(), PictureRequest(image=paths[0])).run(paths)
    assert callers == {"armpy-pictures"}


@pytest.mark.parametrize("reason", ["one thread", "batch", "variables"])
def test_pictures_are_run_one_after_the_other_where_that_matters(
    reason: str, tmp_path: Path, callers: set[str]
) -> None:
    paths = many(tmp_path, 8)
    model = relu((None, 4, 4, 1))
    if reason == "variables":
        net = Network("counter")
        state = net.variable("state", f32(1, 4, 4, 1))
        add = ops.ElementwiseBinary(ops.BinaryOperation.ADD)
        total = net.add(add, net.input("x", f32(1, 4, 4, 1)), state)
        net.assign(state, total)
        net.output("y", total)
        model = Model(net)
    run = PictureRun(
        model,
        PictureRequest(image=paths[0]),
        batch=3 if reason == "batch" else None,
        num_threads=1 if reason == "one thread" else None,
    )
    report = run.run(paths)
    assert callers == {"MainThread"}
    assert {picture.outputs[0].max for picture in report.pictures} == {np.float32(0.2)}


def test_pictures_of_a_profile_are_run_one_after_the_other(
    tmp_path: Path, callers: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    many(tmp_path, 8)
    assert armpy_command(["pictures", MODEL, str(tmp_path / "pictures"), "--profile"]) == 0
    assert "slowest" in capsys.readouterr().out.lower()
    assert callers == {"MainThread"}


@pytest.mark.slow
def test_a_long_table_has_both_ends_and_what_could_not_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_pictures(tmp_path / "pictures", 120, damaged=(3, 60))
    assert armpy_command(["pictures", MODEL, str(tmp_path / "pictures"), "--labels", LABELS]) == 1
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines[2:103]]
    assert names[:50] == [f"{number:04}.png" for number in range(50)]
    assert lines[52].startswith("... 20 more ...")
    assert names[51:] == [f"{number:04}.png" for number in range(70, 120)]
    assert "not used: 2 of 120 pictures" in lines
    assert "not used: 0060.png: not a picture that can be read" in lines


@pytest.mark.slow
def test_a_document_has_all_pictures_and_the_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_pictures(tmp_path / "pictures", 120)
    assert armpy_command(["pictures", MODEL, str(tmp_path / "pictures"), "--json"]) == 0
    text = capsys.readouterr().out
    document = json.loads(text)
    assert [Path(picture["file"]).stem for picture in document["pictures"]] == [
        f"{number:04}" for number in range(120)
    ]
    assert document["pictures_per_s"] == pytest.approx(120 / document["duration_s"])
    assert text == json.dumps(document, indent=2) + "\n"
    assert list(document)[:3] == ["model", "pictures", "input"]


def test_of_results_between_both_ends_the_first_with_an_error_are_kept() -> None:
    shown = ShownResults(2)
    for number in range(20):
        shown.add(PictureResult(str(number), error="damaged" if number % 3 == 0 else ""))
    assert [picture.file for picture in (*shown.first, *shown.last)] == ["0", "1", "18", "19"]
    assert [picture.file for picture in shown.unusable] == ["3", "6"]
    assert shown.count == 20


def test_names_are_all_different_however_often_one_comes() -> None:
    paths = ["a/x.png", "b/x.png", "c/X.jpg", "x_1.png", "d/x.png"]
    assert [*picture_names(paths).values()] == ["x", "x_1", "X_2", "x_1_1", "x_3"]


class Terminal(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def lines_of(
    stream: io.StringIO, total: int, seconds: float, done: int = 0, start: float = 0.0
) -> list[str]:
    """What a log says of a job whose pictures take so many seconds each, after a start."""
    now = 0.0
    lines = ProgressLines(stream, done, total, lambda: now)
    now = start
    for number in range(done + 1, total + 1):
        now += seconds
        lines.show(number)
    return stream.getvalue().splitlines()


def test_a_log_gets_a_line_now_and_then() -> None:
    lines = lines_of(io.StringIO(), 10_000, 1 / 256)
    assert lines == [
        "armpy: 2,560 of 10,000 pictures (26%), 256.0 pictures/s, 29 s left",
        "armpy: 5,120 of 10,000 pictures (51%), 256.0 pictures/s, 19 s left",
        "armpy: 7,680 of 10,000 pictures (77%), 256.0 pictures/s, 9 s left",
    ]
    # Of a job that goes on, the rate is that of this process.
    assert lines_of(io.StringIO(), 10_000, 1 / 256, done=5_000)[0] == (
        "armpy: 7,560 of 10,000 pictures (76%), 256.0 pictures/s, 10 s left"
    )


def test_the_first_start_does_not_count_in_the_time_that_is_left() -> None:
    lines = lines_of(io.StringIO(), 1_000, 0.5, start=60)
    assert lines[:2] == [
        "armpy: 10 of 1,000 pictures (1%), 2.0 pictures/s, 8 min 15 s left",
        "armpy: 30 of 1,000 pictures (3%), 2.0 pictures/s, 8 min 5 s left",
    ]
    # Of a first picture alone no rate is known.
    assert lines_of(io.StringIO(), 1_000, 0.5, start=400)[0] == "armpy: 1 of 1,000 pictures (0%)"


def test_a_log_of_a_long_job_is_short_and_is_not_silent_for_long() -> None:
    assert len(lines_of(io.StringIO(), 100_000, 0.1)) == 99  # 2.8 hours: one in a hundred
    assert len(lines_of(io.StringIO(), 100_000, 1.0)) == 333  # 28 hours: every five minutes
    assert "27 h 41 min left" in lines_of(io.StringIO(), 100_000, 1.0)[0]


def test_a_short_job_and_a_terminal_get_no_lines() -> None:
    assert lines_of(io.StringIO(), 900, 0.01) == []
    assert lines_of(Terminal(), 10_000, 0.1) == []
