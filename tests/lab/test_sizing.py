"""The benchmark that measures what a machine needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab.benchmarks import sizing

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def distribution(folder: Path, name: str, size: int, *requires: str) -> None:
    """A distribution with one module of so many bytes, and its byte code."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    lines = [f"Requires-Dist: {one}\n" for one in requires]
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + "".join(lines)
    )
    for suffix in (".py", ".pyc"):
        (folder / f"{name}{suffix}").write_bytes(b"#" * size)
    (info / "RECORD").write_text(f"{name}.py,,\n{name}.pyc,,\n")


@pytest.fixture(autouse=True)
def distributions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "sized_core", 100, "sized-base", "sized-picture; extra == 'pictures'")
    distribution(tmp_path, "sized_base", 10, "sized-core[pictures]; extra == 'all'")
    distribution(tmp_path, "sized_picture", 1, "sized-other; python_version < '3'")
    distribution(tmp_path, "sized_tool", 1000, "sized-core", "sized-core[pictures]; extra == 'cli'")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize(
    ("requirement", "total"),
    [
        ("sized-core", 110),
        ("sized-core[pictures]", 111),
        ("sized-tool", 1110),
        ("sized-tool[cli]", 1111),  # an extra of what is there already
        ("sized-base[all]", 111),  # a circle
    ],
)
def test_sizes_are_of_all_that_is_needed_without_byte_code(requirement: str, total: int) -> None:
    parts = [*sizing.installed(requirement)]
    assert len({name for name, _ in parts}) == len(parts)
    assert sum(size for _, size in parts) == total


def test_what_is_not_installed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert [*sizing.installed("sized-missing")] == []
    assert capsys.readouterr().err == "not installed, and so not counted: sized-missing\n"


def test_figures_print_with_their_unit_and_range() -> None:
    assert sizing.spread([14_000_000, 14_010_000], "file") == "14"
    assert sizing.spread([0.31, 0.27, 0.3], "later s") == "0.27 to 0.31"
    assert sizing.spread([181_200_000, 120_000_000], "first most") == "120 to 181"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_start_from_the_cache_takes_less_memory_than_the_first(tmp_path: Path) -> None:
    compiled = tmp_path / "digits.armpy"
    first = sizing.start(DIGITS, tmp_path / "cache", str(compiled))
    light = sizing.start(compiled, tmp_path / "cache")
    assert 1_000_000 < light["result private"] < light["result all"] < first["result most"]
    assert light["import all"] - light["python all"] < 5_000_000
    assert compiled.stat().st_size > DIGITS.stat().st_size
