"""Whose code runs when compiled models are loaded."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import DataType, Model, Network, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.backend import SavedProgram
from armpy.errors import InvalidArgumentError, ParserError
from armpy.ops.operation import Array
from armpy.store.archive.signing import generate_keys, key_text, sign
from armpy_testing.models.networks import placement_of
from armpy_testing.systems import NEEDS_OWNERS

pytest.importorskip("numba", reason="Numba is not installed")
pytest.importorskip("cryptography", reason="cryptography is not installed (armpy[sign])")

VALUES = np.linspace(-3, 3, 32, dtype=np.float32)
DOUBLED = VALUES + VALUES


class Signed:
    """A prepared model, and the key that has signed it."""

    def __init__(self, folder: Path) -> None:
        _, self.key = generate_keys(folder / "key.pem")
        self.sign = partial(sign, key_file=folder / "key.pem")
        self.path = folder / "model.armpy"
        network = Network()
        value = network.input("x", TensorInfo((32,), DataType.FLOAT32))
        addition = ops.ElementwiseBinary(ops.BinaryOperation.ADD)
        network.output("y", network.add(addition, value, value))
        Model(network).save(self.path, sign=self.sign)

    @property
    def contents(self) -> bytes:
        return self.path.read_bytes()

    def rewritten(self, change: Callable[[dict[str, object]], None]) -> bytes:
        """The file with another manifest, with a right checksum and without a signature."""
        contents = bytearray(self.contents)
        count = int.from_bytes(contents[16:24], "little")
        manifest = json.loads(contents[256 : 256 + count])
        change(manifest)
        text = json.dumps(manifest, separators=(",", ":")).encode().ljust(count)
        assert len(text) == count
        contents[256 : 256 + count] = text
        contents[32:64] = hashlib.sha256(text).digest()
        contents[64:160] = bytes(96)
        return bytes(contents)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    return Signed(tmp_path_factory.mktemp("made"))


@pytest.fixture
def place(made: Signed, tmp_path: Path) -> Path:
    """A copy of the file in a place of the user's own."""
    path = tmp_path / "model.armpy"
    path.write_bytes(made.contents)
    return path


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[SavedProgram]:
    """The programs that were taken from files."""
    from armpy_numba_acc.files import NumbaPrograms
    from armpy_numba_acc.runtime.loaded import LoadedProgram

    programs: list[SavedProgram] = []
    load = NumbaPrograms.load

    def watched(self: NumbaPrograms, saved: SavedProgram) -> LoadedProgram:
        programs.append(saved)
        return load(self, saved)

    monkeypatch.setattr(NumbaPrograms, "load", watched)
    return programs


def outputs(model: Model) -> Array:
    """What a model makes of the values."""
    with model:
        output = model(VALUES)
        return np.array(output)


def test_code_of_a_file_of_ones_own_runs(place: Path, loads: list[SavedProgram]) -> None:
    np.testing.assert_array_equal(outputs(armpy.load(place)), DOUBLED)
    assert len(loads) == 1


@NEEDS_OWNERS
@pytest.mark.parametrize("place_of", ["file", "bytes"])
def test_code_from_elsewhere_takes_a_trusted_key(
    place_of: str, made: Signed, place: Path, loads: list[SavedProgram]
) -> None:
    place.chmod(0o666)
    source = place if place_of == "file" else made.contents
    with pytest.raises(ParserError, match="but no keys are trusted"):
        armpy.load(source)
    with pytest.raises(ParserError, match="which is not one of the trusted keys"):
        armpy.load(source, trusted_keys=[b"\1" * 32])
    assert not loads
    for code in ("trusted", "signed"):
        model = armpy.load(source, trusted_keys=[key_text(made.key)], code=code)
        np.testing.assert_array_equal(outputs(model), DOUBLED)
    assert len(loads) == 2


def test_a_runtimes_options_say_whose_code_runs(made: Signed, loads: list[SavedProgram]) -> None:
    with Runtime(RuntimeOptions()) as strict, pytest.raises(ParserError, match="no keys are"):
        armpy.load(made.contents, runtime=strict)
    options = RuntimeOptions(trusted_keys=[made.key], code="signed")
    with Runtime(options) as runtime:
        model = armpy.load(made.contents, runtime=runtime)
        np.testing.assert_array_equal(outputs(model), DOUBLED)
        assert len(loads) == 1
        with pytest.raises(InvalidArgumentError, match="options cannot be combined with a runtime"):
            armpy.load(made.contents, runtime=runtime, code="never")
    with pytest.raises(InvalidArgumentError, match="got 'any'"):
        armpy.load(made.contents, code="any")


def test_a_wrong_signature_is_refused_in_an_own_place(
    made: Signed, place: Path, loads: list[SavedProgram]
) -> None:
    contents = bytearray(made.contents)
    contents[100] ^= 1
    place.write_bytes(contents)
    with pytest.raises(ParserError, match="its signature is wrong") as caught:
        armpy.load(place, trusted_keys=[made.key])
    assert key_text(made.key) in str(caught.value)
    assert not loads
    np.testing.assert_array_equal(outputs(armpy.load(place, code="never")), DOUBLED)
    assert not loads


def test_never_compiles_the_graph_and_says_so(
    made: Signed, place: Path, loads: list[SavedProgram]
) -> None:
    place.chmod(0o666)
    for source in (place, made.contents):
        model = armpy.load(source, code="never")
        assert not loads
        reasons = [use.reason for use in placement_of(model).cache_uses]
        assert any("code is not wanted: the option code is 'never'" in reason for reason in reasons)
        np.testing.assert_array_equal(outputs(model), DOUBLED)
    assert not loads


def test_programs_that_claim_to_have_no_code_are_not_taken_either(
    made: Signed, loads: list[SavedProgram]
) -> None:
    def deny(manifest: dict[str, object]) -> None:
        programs = manifest["programs"]
        assert isinstance(programs, list)
        assert [record["code"] for record in programs] == [["code"]]
        for record in programs:
            record["code"] = []

    contents = made.rewritten(deny)
    with pytest.raises(ParserError, match="and it is not signed"):
        armpy.load(contents)
    np.testing.assert_array_equal(outputs(armpy.load(contents, code="never")), DOUBLED)
    assert not loads


def test_unchecked_code_is_not_run_from_ones_own_places(
    made: Signed, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend runs nothing of which the file does not say that it is code."""
    from armpy_numba_acc import files

    def deny(manifest: dict[str, object]) -> None:
        for record in manifest["programs"]:  # type: ignore[attr-defined]
            record["code"] = []

    images: list[object] = []
    monkeypatch.setattr(files, "load_image", images.append)
    place.write_bytes(made.rewritten(deny))
    model = armpy.load(place)
    monkeypatch.undo()
    assert not images
    np.testing.assert_array_equal(outputs(model), DOUBLED)


def test_a_file_of_another_kind_is_no_model(tmp_path: Path) -> None:
    network = Network()
    value = network.input("x", TensorInfo((32,), DataType.FLOAT32))
    network.output("y", network.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), value, value))
    armpy.optimize(network).save(tmp_path / "network.armpy")
    with pytest.raises(ParserError, match=r"holds no model.* got a file of kind 'network'"):
        armpy.load(tmp_path / "network.armpy")


def code_section(contents: bytes) -> slice:
    """Where the code of the first program is."""
    count = int.from_bytes(contents[16:24], "little")
    rows = json.loads(contents[256 : 256 + count])["sections"]
    (row,) = [row for row in rows if row[0] == "programs/0/code"]
    return slice(row[1], row[1] + row[2])


def test_code_is_checked_at_every_start_also_if_the_file_seems_the_same(
    made: Signed, place: Path, loads: list[SavedProgram], caplog: pytest.LogCaptureFixture
) -> None:
    old = place.stat().st_mtime_ns - 10**10
    os.utime(place, ns=(old, old))
    assert outputs(armpy.load(place)).size
    at = code_section(made.contents).start
    with place.open("r+b") as file:
        file.seek(at)
        file.write(b"\xcc\xcc")
    os.utime(place, ns=(old, old))
    loads.clear()
    np.testing.assert_array_equal(outputs(armpy.load(place)), DOUBLED)  # it is compiled anew
    assert "the checksum of section 'programs/0/code' is wrong" in caplog.text
    assert not loads


RUN = """
import ctypes, sys, numpy as np, armpy
closure = ctypes.CFUNCTYPE(None)(print)  # libffi's pages for these are not armpy's
print(*[line.split("-")[0] for line in open("/proc/self/maps") if "rwx" in line])
sys.modules["numba"] = sys.modules["llvmlite"] = None
model = armpy.load(sys.argv[1])
found = model(np.ones(32, np.float32))
assert np.array_equal(found, np.full(32, 2, np.float32))
print(open("/proc/self/maps").read())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc here")
def test_no_page_of_code_can_be_written_nor_is_it_the_files(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, place], capture_output=True, text=True, check=True
    )
    before, *lines = done.stdout.splitlines()
    rows = [line.split(maxsplit=5) for line in lines if line.strip()]
    rights = [(row[1], row[5] if len(row) > 5 else "") for row in rows]
    writable = [row[0].split("-")[0] for row in rows if "w" in row[1] and "x" in row[1]]
    assert {*writable} == {*before.split()}
    assert {right for right, name in rights if name.endswith("model.armpy")} == {"r--s"}
    assert [right for right, name in rights if not name and "x" in right] != []
