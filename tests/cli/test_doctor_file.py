"""What `armpy doctor` says of prepared files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from armpy.backend import (
    IPrograms,
    OptionValues,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
)
from armpy.cli.__main__ import main
from armpy.cli.doctor.diagnose_file import FileExamination, ProgramExamination, examine_file
from armpy.errors import ParserError
from armpy.plugins import BackendRegistry
from armpy.store.archive.container import write_container
from tests.support.command_line import Cli
from tests.support.fake_backends import FakeBackend, registry_of

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")


class ProgramsByName(IPrograms):
    """Takes programs as they say themselves that they are to be taken."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        return None

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        fit = ProgramFit(about["fit"])
        return ProgramCheck(fit, "" if fit is ProgramFit.ACCEPTED else "so it says")

    def load(self, saved: SavedProgram) -> object:
        raise AssertionError("a doctor runs nothing")


class Preparing(FakeBackend):
    def get_programs(self) -> IPrograms:
        return ProgramsByName()


@pytest.fixture
def registry() -> BackendRegistry:
    return registry_of(Preparing("A"), FakeBackend("B"))


def program(backend_id: str, fit: object, digest: str = "0", target: str = "host") -> object:
    """A record of a program in a manifest."""
    about = {"fit": fit} if isinstance(fit, str) else fit
    parts = {"code": "code", "tables": "tables"}
    return {
        "backend": backend_id,
        "digest": digest,
        "target": target,
        "about": about,
        "parts": parts,
    }


def write(folder: Path, *programs: object) -> Path:
    path = folder / "model.armpy"
    manifest = {"kind": "model", "armpy": "0.0.1", "title": "toy", "programs": list(programs)}
    write_container(path, manifest, {"code": b"code" * 8, "tables": b"tables"})
    return path


def told(found: FileExamination) -> list[tuple[str, str]]:
    return [(one.status, one.reason) for one in found.programs]


def test_a_program_that_is_taken_is_used(tmp_path: Path, registry: BackendRegistry) -> None:
    found = examine_file(write(tmp_path, program("A", "accepted")), registry)
    assert found.programs == (ProgramExamination("A", "host", "used", "", 32 + 6),)
    assert found.facts["model"] == "toy"
    assert found.facts["armpy"].startswith("0.0.1, here ")
    assert found.trust == "it lies where nobody else can write (it is not signed)"
    assert (found.is_ok, found.unprepared, found.remedy, found.damage) == (True, 0, "", "")


def test_a_program_that_is_not_taken_says_why(tmp_path: Path, registry: BackendRegistry) -> None:
    records = [program("A", "needs rebuild", "0"), program("A", "foreign", "1")]
    found = examine_file(write(tmp_path, *records), registry)
    assert told(found) == [("needs rebuild", "so it says"), ("foreign", "so it says")]
    assert (found.is_ok, found.unprepared) == (False, 2)
    assert found.remedy == "Prepare the model for this machine: armpy compile"


def test_the_first_program_of_the_same_layers_is_used(
    tmp_path: Path, registry: BackendRegistry
) -> None:
    records = [program("A", fit) for fit in ("foreign", "accepted", "accepted")]
    found = examine_file(write(tmp_path, *records), registry)
    assert told(found) == [
        ("foreign", "so it says"),
        ("used", ""),
        ("not used", "another one of the same layers comes before it"),
    ]
    assert (found.is_ok, found.unprepared) == (True, 0)


def test_backends_that_are_not_there_or_take_none_are_told(
    tmp_path: Path, registry: BackendRegistry
) -> None:
    records = [program("B", "accepted"), program("Absent", "accepted"), program("A", None)]
    found = examine_file(write(tmp_path, *records), registry)
    (b, absent, unclear) = told(found)
    assert b == ("needs rebuild", "the backend takes no programs from files")
    assert absent[0] == "foreign"
    assert "Absent" in absent[1]
    assert unclear == ("foreign", "what the file says of it cannot be understood")
    assert found.unprepared == 3


def test_a_check_that_fails_is_told(tmp_path: Path, registry: BackendRegistry) -> None:
    found = examine_file(write(tmp_path, program("A", {"fit": "??"})), registry)
    ((status, reason),) = told(found)
    assert status == "foreign"
    assert "A / check" in reason


@pytest.mark.parametrize("code", ["trusted", "signed", "never"])
def test_programs_of_a_file_whose_code_may_not_be_used_are_not(
    code: str, tmp_path: Path, registry: BackendRegistry
) -> None:
    path = write(tmp_path, program("A", "accepted"))
    path.chmod(0o666)
    found = examine_file(path, registry, (), code)
    assert told(found) == [("not used", found.trust)]
    assert (found.uses_code, found.is_refused) == (False, code != "never")
    assert found.is_ok == (code == "never")
    assert ("code='never'" in found.remedy) == (code != "never")


def test_damage_is_told_and_nothing_is_used(tmp_path: Path, registry: BackendRegistry) -> None:
    path = write(tmp_path, program("A", "accepted"))
    path.write_bytes(path.read_bytes().replace(b"codecode", b"coDecode", 1))
    found = examine_file(path, registry)
    assert "the checksum of section 'code' is wrong" in found.damage
    assert told(found) == [("not used", found.damage)]
    assert not found.is_ok


@pytest.mark.parametrize("programs", [None, "text", [3, None]])
def test_programs_that_cannot_be_read_are_no_programs(
    programs: object, tmp_path: Path, registry: BackendRegistry
) -> None:
    path = tmp_path / "model.armpy"
    write_container(path, {"programs": programs}, {})
    found = examine_file(path, registry)
    assert found.programs == ()
    assert found.facts["model"] == "unnamed"


def test_a_file_of_another_kind_is_an_error(registry: BackendRegistry) -> None:
    with pytest.raises(ParserError, match="it is no prepared file"):
        examine_file(MODEL, registry)


def test_the_command_says_it_to_people_and_programs(tmp_path: Path, cli: Cli) -> None:
    path = write(tmp_path, program("Absent", "accepted"))
    out = cli.out("doctor", str(path), code=1)
    assert "code: used: it lies where nobody else can write (it is not signed)" in out
    assert "program of Absent for host, 38 bytes: foreign: " in out
    assert "parts to be prepared anew: 1" in out
    document = cli.document("doctor", str(path), code=1)
    assert document["is_ok"] is False
    assert document["programs"][0]["status"] == "foreign"
    assert "code: refused, and the file with it: it is not signed" in cli.out(
        "doctor", str(path), "--code", "signed", code=1
    )
    assert main(["doctor", str(path), "--code", "never"]) == 0


def test_options_that_say_whose_code_is_used_go_with_a_file(cli: Cli) -> None:
    assert "--trusted-key and --code go with a FILE" in cli.err("doctor", "--code", "never")
