"""`armpy inspect` of compiled models."""

from __future__ import annotations

from pathlib import Path

import pytest

import armpy
from armpy_testing.command_line import Cli
from armpy_testing.models.networks import RELU, f32
from tests.support.prepared_layouts import VERSION, read_plainly

for library in ("click", "PIL"):
    pytest.importorskip(library)

MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")


@pytest.fixture
def compiled(cli: Cli, tmp_path: Path) -> str:
    path = str(tmp_path / "model.armpy")
    cli.out("compile", MODEL, "-o", path, "--target", "cortex-a72", "--target", "host")
    return path


@pytest.mark.slow
def test_what_is_in_the_file_is_what_the_container_has(cli: Cli, compiled: str) -> None:
    contents = cli.document("inspect", compiled)["prepared"]
    file = read_plainly(Path(compiled).read_bytes())
    assert contents["version"] == VERSION
    assert contents["armpy"] == armpy.__version__
    assert contents["sections"] == {name: len(section) for name, section in file.sections.items()}
    assert contents["size_bytes"] == Path(compiled).stat().st_size
    assert contents["networks"][0]["inputs"][0]["shape"] == [1, 16, 16, 1]
    assert contents["networks"][0]["layers"] == 10
    assert contents["starts_at_once"]


@pytest.mark.slow
def test_programs_are_listed_with_what_becomes_of_them_here(cli: Cli, compiled: str) -> None:
    contents = cli.document("inspect", compiled)["prepared"]
    pairs = zip(contents["programs"], contents["uses"], strict=True)
    of_target = {program["target"]: (program, use) for program, use in pairs}
    program, use = of_target["cortex-a72"]
    assert use["status"] == "foreign"
    assert "aarch64" in use["reason"]
    assert program["layers"] == 10
    program, use = of_target["host"]
    assert use["status"] == "used"
    file = read_plainly(Path(compiled).read_bytes())
    parts = file.manifest["programs"][program["number"]]["parts"]
    sizes = {name: len(file.sections[section]) for name, section in parts.items()}
    assert program["code_bytes"] == sizes.pop("code") > 0
    assert program["data_bytes"] == sum(sizes.values())
    assert program["about"]["target"] == "host"


def test_a_network_without_programs_is_shown(cli: Cli, tmp_path: Path) -> None:
    network = armpy.Network("small")
    network.output("y", network.add(RELU, network.input("x", f32(2, 3))))
    path = str(tmp_path / "network.armpy")
    armpy.optimize(network, ["CpuRef"]).save(path)
    report = cli.document("inspect", path)
    assert report["layers_by_backend"] == {"CpuRef": 1}
    assert report["prepared"]["programs"] == []
    assert not report["prepared"]["starts_at_once"]
