"""Files that were changed with knowledge of the layout, from the header to the code."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from armpy.errors import ParserError
from armpy.store.archive.container import Container, write_container
from armpy.store.archive.signing import generate_keys, sign
from armpy.store.archive.trust import open_judged
from armpy_testing.systems import NEEDS_REPLACEABLE_FILES

pytest.importorskip("cryptography", reason="cryptography is not installed (armpy[sign])")

CODE = b"code" * 100
WEIGHTS = np.arange(20000, dtype=np.uint8)
SECTIONS = {"code": CODE, "weights": WEIGHTS.tobytes()}
NUM_SIGNED = 64
MANIFEST_DIGEST = slice(32, 64)
MANIFEST_BYTES = slice(16, 24)
HEADER_BYTES = 256


class Place:
    """A signed file, and the key that is trusted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "model.armpy"
        self.key_file = folder / "key.pem"
        _, self.key = generate_keys(self.key_file)
        self.write(self.path)

    def write(self, path: Path, key_file: Path | None = None, **sections: bytes) -> None:
        """Write a file with the sections above or others in their places, signed."""
        signing = partial(sign, key_file=key_file or self.key_file)
        write_container(path, {"kind": "test"}, SECTIONS | sections, signing)

    def contents(self) -> bytearray:
        return bytearray(self.path.read_bytes())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def code_of(contents: bytes | Path, key: bytes, choice: str = "trusted") -> bytes:
    """The code of a file, if it may be used; from memory, so that the signature decides."""
    container, verdict = open_judged(contents, (key,), choice)
    verdict.check()
    assert verdict.uses_code
    return container.checked("code")


def resealed(contents: bytearray) -> bytes:
    """A file whose manifest's checksum was computed again, as anybody can."""
    count = int.from_bytes(contents[MANIFEST_BYTES], "little")
    text = contents[HEADER_BYTES : HEADER_BYTES + count]
    contents[MANIFEST_DIGEST] = hashlib.sha256(text).digest()
    return bytes(contents)


def test_a_signed_file_is_used_from_anywhere(place: Place) -> None:
    assert code_of(bytes(place.contents()), place.key, "signed") == CODE
    place.path.chmod(0o666)
    assert code_of(place.path, place.key) == CODE


def test_code_that_was_changed_is_caught_by_its_checksum(place: Place) -> None:
    contents = place.contents()
    contents[contents.index(CODE) + 7] ^= 1
    with pytest.raises(ParserError, match="the checksum of section 'code' is wrong"):
        code_of(bytes(contents), place.key)


def test_a_checksum_that_was_computed_again_is_caught_by_the_manifests(place: Place) -> None:
    contents = place.contents()
    at = contents.index(CODE)
    evil = b"evil" * 100
    contents[at : at + len(evil)] = evil
    old, new = (hashlib.sha256(code).hexdigest().encode() for code in (CODE, evil))
    contents[contents.index(old) : contents.index(old) + 64] = new
    with pytest.raises(ParserError, match="the manifest's checksum is wrong"):
        code_of(bytes(contents), place.key)
    sealed = resealed(contents)
    assert Container(np.frombuffer(sealed, np.uint8), "sealed").checked("code") == evil
    with pytest.raises(ParserError, match="its signature is wrong"):
        code_of(sealed, place.key)


@pytest.mark.parametrize("position", range(NUM_SIGNED))
def test_every_byte_that_a_signature_is_over_counts(place: Place, position: int) -> None:
    contents = place.contents()
    contents[position] ^= 1
    with pytest.raises(ParserError):
        code_of(bytes(contents), place.key)


def test_the_head_of_another_signed_file_does_not_fit(place: Place) -> None:
    other = place.folder / "other.armpy"
    place.write(other, code=b"evil" * 100)
    contents, donor = place.contents(), other.read_bytes()
    for end, message in ((160, "manifest's checksum is wrong"), (64, "manifest's checksum")):
        with pytest.raises(ParserError, match=message):
            code_of(donor[:end] + bytes(contents[end:]), place.key)
    signature_alone = bytes(contents[:64]) + donor[64:160] + bytes(contents[160:])
    with pytest.raises(ParserError, match="its signature is wrong"):
        code_of(signature_alone, place.key)


def test_a_file_signed_by_a_stranger_is_as_one_that_is_not_signed(place: Place) -> None:
    stranger = place.folder / "stranger.pem"
    generate_keys(stranger)
    place.write(place.path, stranger, code=b"evil" * 100)
    contents = bytes(place.contents())
    with pytest.raises(ParserError, match="which is not one of the trusted keys"):
        code_of(contents, place.key)
    swapped = contents[:64] + place.key + contents[96:]
    with pytest.raises(ParserError, match="its signature is wrong"):
        code_of(swapped, place.key)


@pytest.mark.parametrize("what", [slice(64, 96), slice(96, 160), slice(128, 160)])
def test_a_signature_that_was_taken_off_is_missed(place: Place, what: slice) -> None:
    contents = place.contents()
    contents[what] = bytes(what.stop - what.start)
    with pytest.raises(ParserError, match=r"not one of the trusted keys|signature is wrong"):
        code_of(bytes(contents), place.key)
    contents[64:160] = bytes(96)
    with pytest.raises(ParserError, match="and it is not signed"):
        code_of(bytes(contents), place.key)


@NEEDS_REPLACEABLE_FILES
def test_what_others_can_write_is_read_and_not_mapped(place: Place) -> None:
    """Who could write to it could otherwise change weights that a signature is over."""
    place.path.chmod(0o666)
    container, verdict = open_judged(place.path, (place.key,), "trusted")
    assert verdict.uses_code
    container.check()
    with place.path.open("r+b") as file:
        file.truncate(0)
    assert np.array_equal(container.section("weights"), WEIGHTS)
    container.check()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_copied_to_where_sections_are_aligned(
    place: Place, kind: type[bytes] | type[bytearray] | type[memoryview]
) -> None:
    for skip in range(3):
        source = memoryview(bytes(skip) + bytes(place.contents()))[skip:]
        container, _ = open_judged(kind(source), (place.key,), "trusted")
        for name in SECTIONS:
            assert container.section(name).ctypes.data % 64 == 0


def test_files_that_no_other_user_can_write_are_mapped(place: Place) -> None:
    container, _ = open_judged(place.path, (place.key,), "trusted")
    at = bytes(place.contents()).index(WEIGHTS.tobytes())
    with place.path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff")
    assert container.section("weights")[0] == 0xFF
