from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armpy.store import entries as entries_module
from armpy.store import owned_files as own_files
from armpy.store.entries import Entries
from armpy_testing.effort import effort
from armpy_testing.systems import NEEDS_OWNERS

LIMIT = 1 << 20


def stored(entries: Entries, kind: str, key: str) -> list[bytes] | None:
    parts = entries.read(kind, key)
    return None if parts is None else [part.tobytes() for part in parts]


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


@pytest.fixture
def entries(tmp_path: Path) -> Entries:
    return Entries(tmp_path / "store", LIMIT)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.binary(max_size=300), max_size=4), st.text(max_size=20))
def test_what_is_written_is_read(parts: list[bytes], description: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        entries = Entries(Path(folder), LIMIT)
        assert entries.write("a", "1", parts, description, description[::-1])
        assert stored(entries, "a", "1") == parts
        (listed,) = entries.list_entries()
        fields = (listed.description, listed.group, listed.problem)
        assert fields == (description, description[::-1], "")
        assert entries.verify() == [listed]


@settings(max_examples=effort(80, quick=20))
@given(st.data())
def test_a_damaged_file_is_never_believed(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        entries = Entries(Path(folder), LIMIT)
        entries.write("a", "1", [b"first" * 20, b"second"], "both")
        path = only_file(Path(folder))
        whole = path.read_bytes()
        place = data.draw(st.integers(0, len(whole) - 1))
        damaged = data.draw(
            st.sampled_from(
                [
                    whole[:place],
                    whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :],
                    whole[:place] + whole[place + 1 :],
                    whole + b"x",
                    whole[place:] + whole[:place] if place else b"",
                ]
            )
        )
        path.write_bytes(damaged)
        assert entries.read("a", "1") is None
        (listed,) = entries.verify()
        assert listed.problem
        entries.list_entries()
        entries.write("a", "1", [b"first", b"second"], "both")
        assert stored(entries, "a", "1") == [b"first", b"second"]


def test_a_stretched_file_is_given_no_memory(tmp_path: Path) -> None:
    entries = Entries(tmp_path / "large", 1 << 62)
    entries.write("a", "1", [b"one"], "")
    os.truncate(only_file(Path(entries.location)), 1 << 40)  # a hole, which takes no room
    assert entries.look_up("a", "1").reason == "it is not whole"
    assert [e.problem for e in entries.verify()] == ["it is not whole"]


def test_swapped_files_are_not_believed(entries: Entries) -> None:
    entries.write("a", "1", [b"one"], "")
    entries.write("a", "2", [b"two"], "")
    first, two = sorted(Path(entries.location).iterdir())
    contents = first.read_bytes(), two.read_bytes()
    first.write_bytes(contents[1])
    two.write_bytes(contents[0])
    assert entries.read("a", "1") is None
    assert entries.read("a", "2") is None
    assert [e.problem for e in entries.verify()] == ["it is another entry"] * 2


def test_other_versions_of_the_format_are_not_believed(
    entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(entries_module, "_MAGIC", b"armpyca0")
        entries.write("a", "1", [b"one"], "")
    assert entries.read("a", "1") is None
    assert entries.verify()[0].problem == "it is of another kind"


@pytest.mark.parametrize("make", ["mkdir", "symlink", "fifo"])
def test_what_is_no_file_is_not_read(entries: Entries, make: str, tmp_path: Path) -> None:
    entries.write("a", "1", [b"one"], "")
    path = only_file(Path(entries.location))
    path.rename(tmp_path / "elsewhere")
    if make == "mkdir":
        path.mkdir()
    elif make == "symlink":
        path.symlink_to(tmp_path / "elsewhere")
    elif hasattr(os, "mkfifo"):
        os.mkfifo(path)
    assert entries.read("a", "1") is None
    entries.write("a", "1", [b"one"], "")
    assert stored(entries, "a", "1") == (None if make == "mkdir" else [b"one"])


@NEEDS_OWNERS
def test_files_that_others_can_write_are_not_believed(entries: Entries) -> None:
    entries.write("a", "1", [b"one"], "")
    path = only_file(Path(entries.location))
    path.chmod(0o620)
    assert entries.read("a", "1") is None
    assert entries.verify()[0].problem == "others can write to it"


@NEEDS_OWNERS
def test_files_of_other_users_are_not_believed(
    entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries.write("a", "1", [b"one"], "")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert entries.read("a", "1") is None
    assert entries.verify()[0].problem == "it belongs to another user"


@NEEDS_OWNERS
def test_only_the_user_can_look_into_the_folder(entries: Entries) -> None:
    entries.write("a", "1", [b"one"], "")
    folder = Path(entries.location)
    assert (folder.stat().st_mode & 0o777, only_file(folder).stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )


FAILURES = [
    (os, "replace", errno.EACCES),
    (own_files, "open", errno.EROFS),
    (own_files, "open", errno.ENOSPC),
]


@pytest.mark.parametrize(("owner", "name", "code"), FAILURES, ids=lambda item: str(item)[-20:])
def test_a_disk_that_takes_nothing_stops_nothing(
    entries: Entries,
    owner: object,
    name: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    entries.write("a", "0", [b"zero"], "")
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, "armpy.store"):
        patch.setattr(owner, name, fail, raising=False)
        entries.write("a", "1", [b"one"], "")
        assert os.strerror(code) in caplog.text
        assert entries.problem == os.strerror(code)
    assert entries.read("a", "1") is None
    assert stored(entries, "a", "0") == [b"zero"]
    assert [path.suffix for path in Path(entries.location).iterdir()] == [".entry"]


def test_of_folders_that_cannot_be_written_a_process_warns_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(entries_module, "_REASONS", set())
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "armpy.store"):
        patch.setattr(own_files, "open", fail, raising=False)
        for name in ("one", "two"):
            for key in ("0", "1"):
                Entries(tmp_path / name, LIMIT).write("a", key, [b"zero"], "")
    assert [record.getMessage() for record in caplog.records] == [
        f"nothing is kept: {tmp_path / 'one'}: Read-only file system. Each start compiles anew; "
        "set ARMPY_CACHE_DIR to a folder that can be written"
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO, "armpy.store"):
        entries_module.warn_not_kept("the user has no home directory")
        entries_module.warn_not_kept("the user has no home directory")
    assert [record.levelname for record in caplog.records] == ["INFO"]
    working = Entries(tmp_path / "one", LIMIT)
    working.write("a", "0", [b"zero"], "")
    assert working.problem == ""


def test_a_disk_that_fills_up_while_writing_leaves_no_file(
    entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Filling:
        def __init__(self, path: str, mode: str, opener: Callable[[str, int], int]) -> None:
            self._file = os.fdopen(opener(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), mode)

        def __enter__(self) -> Filling:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def write(self, piece: bytes) -> None:
            if self._file.tell() > 40:
                raise OSError(errno.ENOSPC, "no space")
            self._file.write(piece)

    monkeypatch.setattr(own_files, "open", Filling, raising=False)
    entries.write("a", "1", [b"one" * 50], "")
    assert list(Path(entries.location).iterdir()) == []


def test_an_interrupted_writer_leaves_no_file(
    entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        entries.write("a", "1", [b"one"], "")
    assert list(Path(entries.location).iterdir()) == []


def test_a_folder_that_cannot_be_is_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    entries = Entries(tmp_path / "file" / "store", LIMIT)
    entries.write("a", "1", [b"one"], "")
    assert entries.read("a", "1") is None
    assert (list(entries.list_entries()), entries.clear()) == ([], 0)


def aged(entries: Entries, key: str, age_s: int) -> None:
    path = Path(entries.location, f"a-{key}.entry")
    then = time.time() - age_s
    os.utime(path, (then, then))


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    entries = Entries(tmp_path, 3600)
    for key, age_s in (("1", 30), ("2", 20), ("3", 10)):
        entries.write("a", key, [bytes(1000)], "")
        aged(entries, key, age_s)
    entries.read("a", "1")
    entries.write("a", "4", [bytes(1000)], "")
    names = [entry.name for entry in entries.list_entries()]
    assert names == ["a-4.entry", "a-1.entry", "a-3.entry"]


def listings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is listed from now on."""
    folders: list[object] = []
    scan = os.scandir

    def counted(folder: Path) -> Iterator[os.DirEntry[str]]:
        folders.append(folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", counted)
    return folders


@pytest.mark.slow
def test_processes_that_write_little_list_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = listings(monkeypatch)
    for number in range(580):  # twenty times 1/32 of the limit
        Entries(tmp_path, LIMIT).write("a", str(number), [bytes(1000)], "")
    assert 1 <= len(listed) // 2 <= 80


@pytest.mark.slow
def test_a_full_folder_is_not_listed_every_time_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = Entries(tmp_path, LIMIT)
    for number in range(LIMIT // 1000):
        entries.write("a", str(number), [bytes(1000)], "")
    listed = listings(monkeypatch)
    for number in range(200):
        entries.write("b", str(number), [bytes(1000)], "")
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= LIMIT * 33 // 32
    assert len(listed) < 30
    assert entries.read("b", "199") is not None


def test_what_is_larger_than_the_limit_is_not_kept(tmp_path: Path) -> None:
    entries = Entries(tmp_path, 2000)
    entries.write("a", "1", [bytes(1000)], "")
    entries.write("a", "2", [bytes(3000)], "")
    assert [entry.name for entry in entries.list_entries()] == ["a-1.entry"]


@pytest.mark.parametrize("size", [LIMIT // 10, LIMIT // 100])
def test_a_model_with_many_shapes_leaves_what_others_have(entries: Entries, size: int) -> None:
    entries.write("a", "1", [bytes(LIMIT // 4)], "2 layers", "another")
    for number in range(3 * LIMIT // size):
        entries.write("a", f"s{number}", [bytes(size)], "9 layers", "model")
    assert entries.read("a", "1") is not None
    own = [entry for entry in entries.list_entries() if entry.group == "model"]
    assert LIMIT // 8 < sum(e.size_bytes for e in own) < entries.model_limit_bytes + LIMIT // 16


def test_every_part_of_a_model_is_kept_once(entries: Entries) -> None:
    for number in range(3):
        assert entries.write("a", str(number), [bytes(LIMIT // 5)], f"part {number}", "model")
    assert not entries.write("a", "3", [bytes(LIMIT // 5)], "part 0", "model")
    assert entries.write("a", "3", [bytes(LIMIT // 5)], "part 0", "another")
    assert len(entries.list_entries()) == 4


def test_what_a_model_has_not_used_for_a_day_makes_room_for_other_shapes(entries: Entries) -> None:
    for number in range(2):
        assert entries.write("a", str(number), [bytes(LIMIT // 10)], "part", "model")
    assert not entries.write("a", "2", [bytes(LIMIT // 10)], "part", "model")
    os.utime(Path(entries.location) / "a-0.entry", (time.time() - 90000,) * 2)
    assert entries.write("a", "2", [bytes(LIMIT // 10)], "part", "model")
    assert [entries.read("a", str(number)) is None for number in range(3)] == [True, False, False]


def test_what_dead_writers_left_goes_after_an_hour(entries: Entries) -> None:
    Path(entries.location).mkdir()
    young, old = (Path(entries.location, name) for name in ("young.tmp", "old.tmp"))
    for path in (young, old):
        path.write_text("x")
    os.utime(old, (1, 1))
    entries.write("a", "1", [bytes(LIMIT // 32)], "")
    assert (young.exists(), old.exists()) == (True, False)


def test_clearing_deletes_entries_and_what_was_left_unfinished(entries: Entries) -> None:
    entries.write("a", "1", [b"one"], "")
    entries.write("a", "2", [b"two"], "")
    for name in ("left.tmp", "not-ours.txt"):
        Path(entries.location, name).write_text("x")
    assert entries.clear() == 2
    assert [path.name for path in Path(entries.location).iterdir()] == ["not-ours.txt"]


WORKER = """
import random, sys
from pathlib import Path
from armpy.store.entries import Entries

folder, seed = Path(sys.argv[1]), int(sys.argv[2])
entries, chooser = Entries(folder, 60_000), random.Random(seed)
hits = 0
for _ in range(400):
    key = chooser.randrange(20)
    contents = [str(key).encode() * (200 * key + 1), bytes([key]) * 1000]
    parts = entries.read("a", str(key))
    if parts is None:
        entries.write("a", str(key), contents, "")
    else:
        hits += 1
        assert [part.tobytes() for part in parts] == contents
    if chooser.random() < 0.01:
        entries.clear()
    if chooser.random() < 0.02:
        assert not any(entry.problem for entry in entries.verify())
print(hits)
"""


@pytest.mark.slow
def test_processes_need_not_know_of_each_other(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path), str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(3)
    ]
    for worker in workers:
        output, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
        assert int(output) > 0
    assert not list(tmp_path.glob("*.tmp"))
