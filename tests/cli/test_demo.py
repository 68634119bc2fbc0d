"""``armpy demo``, on CpuRef alone: what it shows does not depend on how fast it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from armpy.cli.__main__ import main
from armpy.cli.demo import work as demo
from armpy.cli.demo.pixels import bar, beside, half_blocks

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "armpy" / "cli" / "demo" / "digits_int8.tflite"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One backend that compiles nothing, and few runs."""
    monkeypatch.setenv("ARMPY_BACKENDS", "CpuRef")
    monkeypatch.setattr(demo, "_TIMED_S", 0.0)
    monkeypatch.setattr(demo, "_LEAST_RUNS", 2)


@pytest.mark.parametrize("digit", range(10))
def test_every_digit_is_read_right(digit: int) -> None:
    from armpy.cli.demo.drawing import LABELS, draw_digit

    pixels = np.asarray(draw_digit(LABELS[digit]).reduce(8), np.uint8)
    reading = demo.read(str(MODEL), pixels, ("CpuRef",))
    assert reading.answer == digit
    assert sum(reading.scores) == pytest.approx(1, abs=0.02)
    assert reading.scores[digit] > 0.9
    assert reading.backends == {"CpuRef": 10}


def test_the_picture_the_answer_and_where_it_ran_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--digit", "4"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("A four, drawn just now\n")
    assert "A small network reads it as four:" in out
    assert "Layers:  CpuRef 10" in out
    assert "every score the same as CpuRef's" in out
    assert out.index("reads it as") < out.index("Preparing it") < out.index("Where the time")
    assert "\x1b" not in out


def test_what_is_found_is_given_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--digit", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["digit"], document["answer"], document["is_right"]) == (2, 2, True)
    assert document["fastest"]["num_runs"] == 2
    # Some operations of the file: see examples/digits/README.md.
    found = {each["operation"] for each in document["operations"]}
    assert {"Convolution2d", "DepthwiseConvolution2d", "FullyConnected", "Softmax"} <= found
    assert sum(each["share"] for each in document["operations"]) == pytest.approx(1)


def test_a_report_of_the_model_is_written_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2")
    page = tmp_path / "page.html"
    assert main(["demo", "--report", str(page)]) == 0
    assert f"Report:  {page}" in capsys.readouterr().out
    assert "digits_int8.tflite" in page.read_text("utf-8")


def test_no_browser_is_opened_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("webbrowser.open", lambda *_: pytest.fail("a browser was opened"))
    assert main(["demo"]) == 0
    assert "Report" not in capsys.readouterr().out


def test_the_report_is_opened_in_a_browser(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2")
    opened: list[str] = []
    monkeypatch.setattr(demo, "has_browser", lambda: True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["demo", "--no-browser"]) == 0
    assert opened == []
    assert main(["demo"]) == 0
    (page,) = tmp_path.rglob("digits.html")
    assert opened == [page.as_uri()]


def test_there_are_ten_digits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--digit", "10"]) == 2
    assert "10 is not in the range 0<=x<=9" in capsys.readouterr().err


def test_two_pixels_are_one_character() -> None:
    pixels = np.array([[0, 255, 0, 255], [0, 0, 255, 255]], np.uint8)
    assert half_blocks(pixels, coloured=False, blocks=True) == [[(" ▀▄█", "")]]
    assert half_blocks(pixels, coloured=False, blocks=False) == [[(".###", "")]]
    (line,) = half_blocks(pixels, coloured=True, blocks=True)
    assert line[1] == ("▀", "#ffffff on #000000")


def test_bars_are_as_long_as_their_share() -> None:
    lengths = [len(bar(share, 20, blocks=True)) for share in (0, 0.5, 1, 2, -1)]
    assert lengths == [0, 10, 20, 20, 0]
    assert bar(0.1, 20, blocks=False) == "##"


def test_the_shorter_side_is_in_the_middle() -> None:
    left = [[("ab", "")]] * 3
    assert beside(left, [[("x", "")]], gap=1)[1] == [("ab", ""), (" ", ""), ("x", "")]
    assert beside(left, [[("x", "")]], gap=1)[0] == [("ab", "")]


def test_the_example_is_the_same_model() -> None:
    assert (ROOT / "examples" / "digits" / "digits_int8.tflite").read_bytes() == MODEL.read_bytes()
