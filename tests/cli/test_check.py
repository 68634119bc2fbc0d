"""`armpy check`: the answer about a compiled model, for people, programs and scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

import armpy
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.command_line import Cli

for library in ("click", "PIL"):
    pytest.importorskip(library)
pytest.importorskip("numba", reason="Numba is not installed")

MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("check") / "model.armpy"
    with armpy.load(MODEL) as model:
        model.save(path)
    return path


def test_a_file_that_fits_is_one_line(cli: Cli, compiled: Path) -> None:
    assert cli.out("check", str(compiled)) == "fits: 10 layers of NumbaAcc for host\n"
    out = cli.out("check", str(compiled), "--device", "NumbaAcc")
    assert out == "fits: 10 layers of NumbaAcc for host\n"


def test_one_that_fits_slower_says_what_to_run(cli: Cli, compiled: Path) -> None:
    reason, remedy = cli.out("check", str(compiled), "--device", "CpuRef").splitlines()
    assert reason.startswith("fits slower: 10 layers of NumbaAcc: for host: CpuRef is wanted; ")
    _, _, command = remedy.partition("Run: ")
    assert command == f"armpy compile --backends CpuRef {compiled} -o OTHER.armpy"
    cli.out(*command.replace("OTHER", str(compiled.with_name("other"))).split()[1:])
    other = str(compiled.with_name("other.armpy"))
    assert cli.out("check", other, "--device", "CpuRef").startswith("fits: ")


def test_one_that_does_not_fit_ends_with_1(cli: Cli, compiled: Path, tmp_path: Path) -> None:
    out = cli.out("check", str(compiled), "--device", "Nowhere", code=1)
    assert out.startswith("does not fit: there is no backend 'Nowhere'. Expected one of ")
    cut = tmp_path / "cut.armpy"
    cut.write_bytes(compiled.read_bytes()[:400])
    reason, remedy = cli.out("check", str(cut), code=1).splitlines()
    assert reason.startswith("does not fit: the compiled model is damaged: it is not whole")
    assert remedy == "to do: Copy it again, or make it again with armpy compile"


def test_programs_get_the_same(cli: Cli, compiled: Path) -> None:
    document = cli.document("check", str(compiled), "--code", "never")
    assert (document["path"], document["device"]) == (str(compiled), None)
    assert document["fit"] == "fits slower"
    assert document["reason"].endswith("code is not wanted: the option code is 'never'")
    (program,) = document["programs"]
    assert (program["backend_id"], program["target"]) == ("NumbaAcc", "host")
    assert program["status"] == "not used"


def test_backends_in_folders_are_asked(cli: Cli, compiled: Path, tmp_path: Path) -> None:
    write_module(tmp_path / "modules", "acme_npu_backend", module_source("AcmeNpu"))
    options = ("--device", "AcmeNpu", "--dynamic-backends-path", str(tmp_path / "modules"))
    assert "the file has nothing for AcmeNpu" in cli.out("check", str(compiled), *options)
