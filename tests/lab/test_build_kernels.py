"""The script that builds the kernel packs which come with NumbaAcc."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy_testing.digits import MODEL as DIGITS
from lab import build_kernels
from tests.support.prepared_layouts import read_document, read_plainly

pytest.importorskip("numba")
pytestmark = pytest.mark.slow


def target_and_names(pack: Path) -> tuple[str, list[str]]:
    """The target that a pack is for, and the names of its kernels."""
    file = read_plainly(pack.read_bytes())
    return file.manifest["about"]["target"], read_document(file.sections["names"])


def test_lists_are_made_from_models_and_packs_from_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_kernels, "OWN_PACKS", tmp_path)
    path = tmp_path / build_kernels.TABLE
    path.write_text("------x-\tfill\nx-------\tlookup\t1\t1\n", "utf-8")
    bad = tmp_path / "bad.tflite"
    bad.write_bytes(b"no model")
    arguments = ["--add", str(DIGITS), str(bad), "--targets", "neoverse-n1"]
    assert build_kernels.main(arguments) == 1
    assert f"{bad} is left out" in capsys.readouterr().out
    listed = path.read_text("utf-8").splitlines()
    assert {"------x-\texecutor", "------x-\tfill", "------x-\tworker\t8192"} <= {*listed}
    assert [line for line in listed if line[0] == "x"] == ["x-------\tlookup\t1\t1"]
    target, names = target_and_names(tmp_path / "neoverse-n1.kernels")
    symbols = {kernel.symbol for kernel in build_kernels.read_table()["neoverse-n1"]}
    assert symbols <= {*names}
    assert len(symbols) == len(listed) - 1
    assert target == "neoverse-n1"
    path.write_text("------x-\tlookup\t1\t1\n", "utf-8")
    assert build_kernels.main(["--targets", "neoverse-n1"]) == 0
    _, names = target_and_names(tmp_path / "neoverse-n1.kernels")
    assert names == ["armpy_numba_acc.kernels.lookup._lookup_bytes", "lookup_1_1"]
