"""Compiled models as containers: what is wrong in one is found, and said."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armpy.errors import InvalidArgumentError, ParserError
from armpy.store.archive.container import open_container, write_container
from armpy_testing.systems import NEEDS_NAMED_PIPES, NEEDS_REPLACEABLE_FILES
from tests.support.prepared_layouts import newest_layout, read_plainly, sealed

SECTIONS = {"a": b"a" * 100, "empty": b"", "large": bytes(range(256)) * 40, "z": b"z"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.armpy"


def manifest_of(table: object, **more: object) -> bytes:
    """A sealed file of nothing but a manifest and 64 bytes."""
    text = json.dumps({"sections": table, **more}).encode()
    return sealed(text.ljust(1024), b"x" * 64)


def row(
    name: str = "a", offset: object = 1280, size: object = 64, digest: object = "0" * 64
) -> Any:
    return [name, offset, size, digest]


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        write_container(tmp_path, {}, SECTIONS)

    def fail(signed: bytes) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_container(tmp_path / "a", {}, SECTIONS, fail)
    with pytest.raises(ValueError, match="JSON"):
        write_container(tmp_path / "a", {"number": float("nan")}, SECTIONS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("begin", "new", "text"),
    [
        (0, b"?", "not a compiled model"),
        (7, b"\0", "not a compiled model"),
        (8, b"\x01", "Expected version 4; got version 1"),
        (8, b"\xff\xff\xff\xff", "got version 4294967295"),
        (12, b"\x01", "wrong header"),
        (15, b"\x80", "wrong header"),
        (16, bytes(8), "manifest's checksum"),
        (16, b"\xff" * 8, "wrong header"),
        (18, b"\x00\x04", "wrong header"),
        (24, bytes(8), "not whole. Expected 0 bytes"),
        (24, b"\xff" * 8, "not whole"),
        (32, b"\0\0", "manifest's checksum"),
        (63, b"\0\0", None),
        (64, b"k" * 32, None),
        (96, b"s" * 64, None),
        (160, b"\x01", "wrong header"),
        (255, b"\x01", "wrong header"),
    ],
)
def test_every_field_of_the_header_counts(begin: int, new: bytes, text: str | None) -> None:
    sound = newest_layout(SECTIONS)
    contents = sound[:begin] + new + sound[begin + len(new) :]
    if begin in (64, 96):  # who has signed it is no matter of the container's
        assert open_container(contents).sections.keys() == SECTIONS.keys()
        return
    with pytest.raises(ParserError, match=text or "manifest's checksum"):
        open_container(contents)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 11, 12, 63, 64, 255, 256, 300, 70_000])
def test_a_truncated_file_is_refused(size: int, path: Path) -> None:
    contents = newest_layout(SECTIONS)[:size]
    path.write_bytes(contents)
    for source in (contents, path):
        with pytest.raises(ParserError, match=r"not whole|not a compiled model"):
            open_container(source)


def test_a_longer_file_is_refused() -> None:
    with pytest.raises(ParserError, match="not whole"):
        open_container(newest_layout(SECTIONS) + b"\0")
    text = read_plainly(newest_layout({})).manifest_text
    with pytest.raises(ParserError, match="data follows its last section"):
        open_container(sealed(text, b"\0" * 64))


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (None, "no table"),
        ({}, "no table"),
        ([None], "another form"),
        ([[]], "another form"),
        ([row()[:3]], "another form"),
        ([[*row(), 1]], "another form"),
        ([row(offset=1280.0)], "another form"),
        ([row(offset=True)], "another form"),
        ([row(name=5)], "another form"),  # type: ignore[arg-type]
        ([row(digest=None)], "another form"),
        ([row(digest="0" * 63)], "row of section 'a' cannot be"),
        ([row(digest="x" * 64)], "checksum of section 'a' is none"),
        ([row(size=-1)], "row of section 'a' cannot be"),
        ([row(offset=-64)], "row of section 'a' cannot be"),
        ([row(offset=0)], "cannot be where"),
        ([row(offset=1216)], "cannot be where"),
        ([row(offset=1281, size=63)], "cannot be where"),
        ([row(offset=1344)], "is not whole"),
        ([row(size=65)], "is not whole"),
        ([row(size=2**64)], "is not whole"),
        ([row(offset=2**70)], "is not whole"),
        ([row(), row("b")], "'b' cannot be where"),
        ([row(size=0), row("a", size=64)], "'a' cannot be where"),
        ([row(size=63)], "follows its last"),
        ([], "follows its last"),
    ],
)
def test_sections_lie_in_the_file_one_after_the_other(table: object, text: str) -> None:
    with pytest.raises(ParserError, match=text):
        open_container(manifest_of(table))


def test_a_checksum_of_another_form_is_wrong() -> None:
    digest = " ".join(["00"] * 21) + "0" * 2
    contents = manifest_of([row(digest=digest[:64].ljust(64))])
    with pytest.raises(ParserError):
        open_container(contents).check()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"5",
        b"{",
        b"\xff\xfe",
        b'{"sections": []} x',
        b'{"sections": [], "sections": []}',
        b'{"sections": [], "a": {"b": 1, "b": 2}}',
        b'{"sections": [], "a": NaN}',
        b'{"sections": [], "a": -Infinity}',
        b'{"sections": [], "a": ' + b"9" * 5000 + b"}",
        b'{"sections": [], "a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"sections": [],}',
    ],
    ids=lambda text: text[:40].decode(errors="replace"),
)
def test_a_manifest_that_is_no_strict_json_is_refused(text: bytes) -> None:
    with pytest.raises(ParserError, match="damaged"):
        open_container(sealed(text, b""))


@pytest.mark.slow
def test_a_million_sections_are_read_in_bearable_time() -> None:
    """A row more than the table may have is refused before any is looked at."""
    digest = "0" * 64
    rows = ",".join(f'["{n:x}",0,0,"{digest}"]' for n in range(2))
    assert len(json.loads(f"[{rows}]")) == 2
    many = b'{"sections":[' + b",".join([b"0"] * ((1 << 20) + 1)) + b"]}"
    with pytest.raises(ParserError, match="no table of sections"):
        open_container(sealed(many, b""))
    most = b'{"sections":[' + b",".join([b"0"] * (1 << 20)) + b"]}"
    with pytest.raises(ParserError, match="another form"):
        open_container(sealed(most, b""))


def test_sections_that_were_swapped_are_found() -> None:
    contents = {"a": b"a" * 64, "b": b"b" * 64}
    sound = newest_layout(contents)
    offsets = read_plainly(sound).offsets
    swapped = bytearray(sound)
    swapped[offsets["a"] : offsets["a"] + 64] = contents["b"]
    swapped[offsets["b"] : offsets["b"] + 64] = contents["a"]
    with pytest.raises(ParserError, match="checksum of section 'a'"):
        open_container(bytes(swapped)).check()


def test_what_lies_between_sections_is_found() -> None:
    sound = newest_layout(SECTIONS)
    place = read_plainly(sound).offsets["large"] - 1
    contents = sound[:place] + b"?" + sound[place + 1 :]
    with pytest.raises(ParserError, match="between its sections, before 'large'"):
        open_container(contents).check()


@pytest.mark.parametrize("name", ["none", "", "x" * 1000])
def test_a_section_that_is_not_there_is_an_error(name: str) -> None:
    container = open_container(newest_layout(SECTIONS))
    with pytest.raises(ParserError, match=f"no section '{name[:80]}'"):
        container.section(name)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(fifo, marks=NEEDS_NAMED_PIPES),
        Path.mkdir,
        pytest.param(link_to_zeros, marks=NEEDS_NAMED_PIPES),  # and no device
        Path.touch,
    ],
)
def test_what_is_no_regular_file_or_empty_is_refused(
    make: Callable[[Path], None], path: Path
) -> None:
    make(path)
    with pytest.raises(
        ParserError, match=r"not a regular file|not a compiled model|cannot be read"
    ):
        open_container(path)


@pytest.mark.parametrize(
    ("name", "failed"),
    [
        ("none", "no such file"),
        ("a\0b", "cannot be read"),
        ("a" * 5000, "cannot be read|no such file"),  # Windows has one error for three cases
        ("file/none", "cannot be read|no such file"),
    ],
)
def test_a_path_that_cannot_be_opened_is_an_error(name: str, failed: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ParserError, match=failed):
        open_container(str(tmp_path / name))


@pytest.mark.parametrize("size", [0, 100, 300])
def test_a_file_that_shrinks_while_it_is_opened_is_refused(
    size: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(newest_layout(SECTIONS))
    look = os.fstat

    def shrink(handle: int) -> os.stat_result:
        info = look(handle)
        os.truncate(path, size)
        return info

    monkeypatch.setattr(os, "fstat", shrink)
    with pytest.raises(ParserError, match=r"cannot be mapped|not whole"):
        open_container(path)


@NEEDS_REPLACEABLE_FILES
def test_a_file_that_is_replaced_stays_as_it_was_for_who_has_it(path: Path) -> None:
    write_container(path, {}, SECTIONS)
    container = open_container(path)
    write_container(path, {}, SECTIONS | {"a": b"other"})
    container.check()
    assert container.checked("a") == SECTIONS["a"]
    assert open_container(path).checked("a") == b"other"


def test_code_is_a_copy_of_what_was_checked(path: Path) -> None:
    write_container(path, {}, SECTIONS)
    container = open_container(path)
    copied = container.checked("z")
    with path.open("r+b") as file:
        file.seek(read_plainly(path.read_bytes()).offsets["z"])
        file.write(b"?")
    assert copied == b"z"
    assert isinstance(copied, bytes)
    with pytest.raises(ParserError, match="checksum of section 'z'"):
        container.checked("z")


@NEEDS_NAMED_PIPES
def test_a_pipe_is_not_replaced_by_a_compiled_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InvalidArgumentError, match="the path is not a file"):
        write_container(pipe, {}, {})
    assert pipe.is_fifo()
    assert [*tmp_path.iterdir()] == [pipe]
