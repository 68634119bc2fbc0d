"""Many pictures: threads, names of their files, and the table."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

for library in ("click", "PIL"):
    pytest.importorskip(library)

from armpy import Model, ops  # noqa: E402
from armpy.graph.network import Network  # noqa: E402
from armpy_testing.command_line import armpy_command  # noqa: E402
from armpy_testing.digits import FOLDER as DIGITS  # noqa: E402
from armpy_testing.models.networks import RELU, f32  # noqa: E402
from armpy_tools.cli.pictures.one_picture import PictureRequest  # noqa: E402
from armpy_tools.cli.pictures.picture_files import picture_names  # noqa: E402
from armpy_tools.cli.pictures.run_pictures import PictureRun  # noqa: E402
from armpy_tools.pictures.picture_reader import in_order  # noqa: E402

Image = pytest.importorskip("PIL.Image")


def many(folder: Path, count: int) -> list[str]:
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


@pytest.mark.slow
def test_a_long_table_has_both_ends_and_what_could_not_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = many(tmp_path, 120)
    for number in (3, 60):
        Path(paths[number]).unlink()
        Path(paths[number]).write_text("no picture")
    model = str(DIGITS / "digits_int8.tflite")
    assert armpy_command(["pictures", model, str(tmp_path / "pictures")]) == 1
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines[2:103]]
    assert names[:50] == [f"{number:04}.png" for number in range(50)]
    assert lines[52].startswith("... 20 more ...")
    assert names[51:] == [f"{number:04}.png" for number in range(70, 120)]
    assert "not used: 2 of 120 pictures" in lines
    assert "not used: 0060.png: not a picture that can be read" in lines


def test_names_are_all_different_however_often_one_comes() -> None:
    paths = ["a/x.png", "b/x.png", "c/X.jpg", "x_1.png", "d/x.png"]
    assert [*picture_names(paths).values()] == ["x", "x_1", "X_2", "x_1_1", "x_3"]
