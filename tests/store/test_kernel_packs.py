"""Kernel packs as files: written packs come back, unless others can have changed them."""

from __future__ import annotations

import hashlib
import logging
import lzma
import os
import struct
from pathlib import Path
from typing import Any

import pytest

import armpy
from armpy.errors import ParserError
from armpy.store.archive.container import HEADER_BYTES, open_container, write_container
from armpy.store.archive.kernel_packs import KernelPack, found_packs, packs_of, write_pack
from armpy_testing.systems import NEEDS_OWNERS
from tests.support.prepared_layouts import newest_layout

VARIABLE = "ARMPY_KERNELS"
KERNELS = {f"kernel_{n}": bytes([n]) * (50 + n) + os.urandom(20) for n in range(40)} | {"none": b""}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written = tmp_path / "some.kernels"
    size = write_pack(written, "Acc", {"target": "znver4"}, KERNELS)
    assert size == written.stat().st_size
    return written


def opened(path: Path) -> KernelPack:
    return KernelPack(open_container(path))


def test_a_pack_may_be_empty(tmp_path: Path) -> None:
    write_pack(tmp_path / "empty.kernels", "Acc", {}, {})
    assert opened(tmp_path / "empty.kernels").find(["kernel_1"]) == {}


def test_a_changed_byte_anywhere_gives_an_error_or_the_same_kernels(path: Path) -> None:
    whole = path.read_bytes()
    changed = 0
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        try:
            pack = KernelPack(open_container(bytes(damaged)))
            assert pack.find(KERNELS) == KERNELS
        except ParserError:
            changed += 1
    # All but what lies between sections, and the names, which are not run, is under a checksum.
    assert changed > len(whole) // 7 // 2


@pytest.mark.parametrize("size", [0, 1, HEADER_BYTES, 1000])
def test_half_a_pack_is_refused(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ParserError):
        opened(path)


def test_a_model_is_no_pack_and_a_pack_no_model(path: Path, tmp_path: Path) -> None:
    write_container(tmp_path / "model.armpy", {"kind": "model"}, {})
    with pytest.raises(ParserError, match="it is not a kernel pack"):
        opened(tmp_path / "model.armpy")
    with pytest.raises(ParserError, match="kernels"):
        armpy.load(path)


INDEX_RECORD = struct.Struct("<16sIII")
BLOCK_RECORD = struct.Struct("<QII32s")
PACKED = lzma.compress(b"abc")
SIZE = len(PACKED)
SUM = hashlib.sha256(PACKED).digest()


def packed_by_hand(path: Path, record: tuple[int, int, int], block: tuple[Any, ...]) -> KernelPack:
    """A pack of one kernel and one block, as the records say."""
    sections = {
        "index": INDEX_RECORD.pack(hashlib.sha256(b"kernel_1").digest()[:16], *record),
        "blocks": BLOCK_RECORD.pack(*block),
        "names": b"",
        "code": PACKED,
    }
    manifest = {"kind": "kernels", "backend": "Acc", "about": {}}
    path.write_bytes(newest_layout(sections, manifest))
    return opened(path)


def test_records_by_hand_lead_to_a_kernel(tmp_path: Path) -> None:
    pack = packed_by_hand(tmp_path / "p", (0, 1, 2), (0, SIZE, 3, SUM))
    assert pack.find(["kernel_1"]) == {"kernel_1": b"bc"}


@pytest.mark.parametrize(
    ("record", "block", "said"),
    [
        ((1, 0, 3), (0, SIZE, 3, SUM), "no block 1"),
        ((0, 1, 3), (0, SIZE, 3, SUM), "kernel_1"),
        ((0, 0, 3), (10**12, SIZE, 3, SUM), "checksum of block 0"),
        ((0, 0, 3), (0, SIZE, 3, bytes(32)), "checksum of block 0"),
        ((0, 0, 3), (0, SIZE, 1 << 31, SUM), "cannot be inflated"),
        ((0, 0, 3), (0, SIZE, 2, SUM), "cannot be inflated"),
        ((0, 0, 3), (0, 4, 3, hashlib.sha256(b"\xfd7zX").digest()), "cannot be inflated"),
    ],
    ids=[
        "no block",
        "outside of the block",
        "outside of the file",
        "another checksum",
        "too little compressed",
        "too much compressed",
        "half a block",
    ],
)
def test_records_that_lead_elsewhere_give_no_code(
    tmp_path: Path, record: tuple[int, int, int], block: tuple[Any, ...], said: str
) -> None:
    with pytest.raises(ParserError, match=said):
        packed_by_hand(tmp_path / "p", record, block).find(["kernel_1"])


@pytest.mark.parametrize("short", ["index", "blocks"])
def test_half_a_record_is_refused(tmp_path: Path, short: str) -> None:
    manifest = {"kind": "kernels", "backend": "Acc", "about": {}}
    sections = {"index": b"", "blocks": b"", "names": b"", "code": b""}
    (tmp_path / "p").write_bytes(newest_layout(sections | {short: b"x" * 27}, manifest))
    with pytest.raises(ParserError, match="cannot be read"):
        opened(tmp_path / "p")


def test_a_backends_own_packs_are_found_after_those_of_the_variable(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "znver4.kernels"
    write_pack(own, "Acc", {}, {"one": b"1"})
    monkeypatch.setenv(VARIABLE, f" {path} ")
    assert [pack.where for pack in packs_of("Acc", [str(own)])] == [str(path), str(own)]
    monkeypatch.delenv(VARIABLE)
    assert [pack.where for pack in packs_of("Acc", [str(own)])] == [str(own)]
    monkeypatch.setenv(VARIABLE, "off")
    assert packs_of("Acc", [str(own)]) == ()


def test_a_backends_own_pack_is_trusted_as_its_modules_are(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    path.chmod(0o666)
    assert [pack.where for pack in packs_of("Acc", [str(path)])] == [str(path)]


def test_a_file_copied_over_a_pack_in_use_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(path))
    (pack,) = packs_of("Acc")
    with path.open("r+b") as file:  # as cp does; what is mapped would be gone
        file.truncate(0)
    assert pack.find(KERNELS) == KERNELS


@NEEDS_OWNERS
def test_several_bad_packs_in_one_folder_are_one_warning(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (path.parent / "other.kernels").write_bytes(path.read_bytes())
    for pack_file in path.parent.glob("*.kernels"):
        pack_file.chmod(0o666)
    monkeypatch.setenv(VARIABLE, str(path.parent))
    with caplog.at_level(logging.WARNING):
        assert packs_of("Acc") == ()
    assert len(caplog.records) == 1


def test_a_pack_is_checked_whole(path: Path, tmp_path: Path) -> None:
    opened(path).check()
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    with pytest.raises(ParserError, match="checksum of block"):
        opened(path).check()


@NEEDS_OWNERS
def test_a_pack_that_others_can_write_is_not_used_and_it_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path.chmod(0o666)
    monkeypatch.setenv(VARIABLE, str(path))
    with caplog.at_level(logging.WARNING):
        assert packs_of("Acc") == ()
        assert packs_of("Acc") == ()
    assert [pack_file.reason for pack_file in found_packs()] == [
        f"its file {path} can be written by everybody. Install it as the user who runs armpy or as "
        "root, or copy it to a place of yours"
    ]
    assert caplog.text.count("can be written by everybody") == 1


def test_a_pack_that_is_not_there_is_said_and_the_others_are_used(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    missing = path.parent / "missing.kernels"
    monkeypatch.setenv(VARIABLE, f"{missing}{os.pathsep}{path}")
    with caplog.at_level(logging.WARNING):
        assert [pack.where for pack in packs_of("Acc")] == [str(path)]
    assert "missing.kernels" in caplog.text
