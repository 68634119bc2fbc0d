from __future__ import annotations

import re
from pathlib import Path

import pytest

from armpy_testing.command_line import armpy_output
from armpy_testing.digits import FOLDER as DIGITS
from armpy_testing.shared import shared_file

MODEL = str(DIGITS / "digits_int8.tflite")


def report(*arguments: str) -> tuple[int, str]:
    return armpy_output(["report", MODEL, "--backends", "CpuRef", "--runs", "1", *arguments])


@pytest.mark.slow
def test_a_report_is_one_page_about_the_model(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    picture = str(DIGITS / "pictures" / "seven.png")
    code, output = report("-o", str(page), "--image", picture)
    assert code == 0
    assert str(page) in output
    text = page.read_text("utf-8").replace("<wbr>", "")
    for expected in ("digits_int8.tflite", "CONV_2D", "seven.png"):
        assert expected in text
    assert "http" not in text.split("</style>")[1].split("<script>")[0]


def test_a_page_does_not_take_the_place_of_its_model(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.write_bytes(Path(MODEL).read_bytes())
    code, output = armpy_output(["report", str(model), "-o", str(model)])
    assert code == 2
    assert "this file is read from" in output
    assert model.read_bytes() == Path(MODEL).read_bytes()


def test_a_layer_that_two_backends_share_counts_for_both(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    model = shared_file("models", "operators", "op_STFT.tflite")
    assert armpy_output(["report", str(model), "-o", str(page), "--no-accuracy"])[0] == 0
    text = re.sub(r"<[^>]+>", " ", page.read_text("utf-8"))
    share, *_ = re.findall(r"CpuRef: +([\d.]+) %", text)
    assert float(share) > 5


@pytest.mark.parametrize("name", ["op_UNIQUE", "op_WHERE"])
def test_a_network_that_waits_for_elements_has_a_report(name: str, tmp_path: Path) -> None:
    model = shared_file("models", "operators", f"{name}.tflite")
    page = tmp_path / "page.html"
    assert armpy_output(["report", str(model), "-o", str(page), "--runs", "2"])[0] == 0
    assert "Memory" in page.read_text("utf-8")
