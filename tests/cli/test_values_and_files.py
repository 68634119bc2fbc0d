"""Values of options, and files that are read and written."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from armpy.cli.files import (
    check_writable,
    file_stems,
    read_npy,
    write_outputs,
    write_text,
)
from armpy.cli.inputs.request import InputRequest, split_input
from armpy.cli.values import parse_names, parse_numbers, parse_range, parse_shape, parse_size
from armpy.errors import InvalidArgumentError
from armpy_testing.command_line import armpy_command
from armpy_testing.systems import NEEDS_LINKS


def test_a_size_is_height_and_width() -> None:
    assert parse_size("224x320") == (224, 320)
    assert parse_size("1X2") == (1, 2)


@pytest.mark.parametrize("text", ["224", "0x5", "-1x5", "axb", "1x2x3", ""])
def test_what_is_no_size_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="expected HEIGHTxWIDTH"):
        parse_size(text)


def test_a_size_that_no_memory_holds_is_rejected() -> None:
    with pytest.raises(ValueError, match="at most 67108864 pixels"):
        parse_size("99999x99999")


def test_numbers_have_commas_between_them() -> None:
    assert parse_numbers("1,-2.5, 3e1") == (1.0, -2.5, 30.0)


@pytest.mark.parametrize("text", ["", "1,,2", "a"])
def test_what_is_no_number_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="expected numbers"):
        parse_numbers(text)


@pytest.mark.parametrize("text", ["nan", "1,inf"])
def test_numbers_must_be_finite(text: str) -> None:
    with pytest.raises(ValueError, match="expected finite numbers"):
        parse_numbers(text)


def test_a_range_is_two_different_numbers() -> None:
    assert parse_range("-1,1") == (-1.0, 1.0)
    for text in ("1", "1,1", "1,2,3"):
        with pytest.raises(ValueError, match="expected two different numbers"):
            parse_range(text)


def test_names_have_commas_between_them() -> None:
    assert parse_names("NumbaAcc, CpuRef") == ("NumbaAcc", "CpuRef")
    with pytest.raises(ValueError, match="expected names"):
        parse_names("A,")


@pytest.mark.parametrize(
    ("text", "shape"),
    [("x=1,224,3", ("x", (1, 224, 3))), ("a=b:0=2", ("a=b:0", (2,))), ("x=", ("x", ()))],
)
def test_a_shape_has_a_name_and_sizes(text: str, shape: tuple[str, tuple[int, ...]]) -> None:
    assert parse_shape(text) == shape


def test_names_may_hold_the_sign_that_ends_them() -> None:
    assert split_input("a=b=x.npy", ["a=b", "a"]) == ("a=b", "x.npy")
    assert split_input("a=b=x.npy", ["a"]) == ("a", "b=x.npy")
    assert split_input("=x.npy", [""]) == ("", "x.npy")


def test_an_unknown_name_is_reported_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no such input.*'a', 'b'; got 'c'"):
        split_input("c=x.npy", ["a", "b"])
    with pytest.raises(InvalidArgumentError, match="Did you mean 'image'"):
        split_input("imag=x.npy", ["image", "mask"])
    with pytest.raises(InvalidArgumentError, match="not of the form NAME=VALUE"):
        split_input("x.npy", ["a", "b"])


def test_an_only_input_needs_no_name(tmp_path: Path) -> None:
    assert split_input("x.npy", ["a"]) == ("a", "x.npy")
    odd = tmp_path / "b=c.npy"
    odd.touch()
    assert split_input(str(odd), ["a"]) == ("a", str(odd))
    with pytest.raises(InvalidArgumentError, match=r"no such input.*'a'; got 'b'"):
        split_input("b=absent.npy", ["a"])


def test_an_input_given_twice_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(3))
    assert InputRequest((f"a={path}",)).values(["a"]) == {"a": str(path)}
    with pytest.raises(InvalidArgumentError, match="'a' is given twice"):
        InputRequest((f"a={path}", f"a={path}")).values(["a"])


@pytest.mark.parametrize("array", [np.float32(3), np.zeros((0, 2)), np.arange(6).reshape(2, 3).T])
def test_arrays_of_every_shape_are_read(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", array)
    array_read = read_npy(str(tmp_path / "x.npy"))
    np.testing.assert_array_equal(array_read, array)
    assert array_read.dtype == array.dtype


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(InvalidArgumentError, match=r"x\.npy: the array cannot be read.*objects"):
        read_npy(str(tmp_path / "x.npy"))


def test_a_file_that_is_no_array_is_rejected(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros(1))
    (tmp_path / "y.npy").write_text("hello")
    for name in ("x.npz", "y.npy"):
        with pytest.raises(InvalidArgumentError, match=r"not a \.npy file"):
            read_npy(str(tmp_path / name))
    with pytest.raises(InvalidArgumentError, match="cannot be read: No such file"):
        read_npy(str(tmp_path / "nothing.npy"))


def test_a_header_that_promises_more_than_the_file_holds_is_rejected(tmp_path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000)}"
    header = header.ljust(117) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(InvalidArgumentError, match="the array cannot be read"):
        read_npy(str(tmp_path / "x.npy"))
    (tmp_path / "y.npy").write_bytes(content[:20])
    with pytest.raises(InvalidArgumentError, match="the array cannot be read"):
        read_npy(str(tmp_path / "y.npy"))


@pytest.mark.parametrize(
    ("names", "stems"),
    [
        (["a/b:0"], ["a_b_0"]),
        (["../../etc/passwd"], ["etc_passwd"]),
        (["/", ""], ["output", "output_1"]),
        (["a:0", "A/0"], ["a_0", "A_0_1"]),
        (["x" * 500], ["x" * 100]),
        ([".hidden"], ["hidden"]),
        (["ä\0b"], ["b"]),
    ],
)
def test_file_names_are_plain_and_differ(names: list[str], stems: list[str]) -> None:
    assert file_stems(names) == stems


def test_outputs_are_written(tmp_path: Path) -> None:
    stored = np.arange(6, dtype=np.int8).reshape(1, 2, 3)
    written = write_outputs(str(tmp_path / "new" / "folder"), {"a/b": stored, "a_b": stored})
    assert [Path(path).name for path in written] == ["a_b.npy", "a_b_1.npy"]
    np.testing.assert_array_equal(np.load(written[0]), stored)


def test_a_header_that_ends_early_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "cut.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00\x05\x00{[(-\n")
    with pytest.raises(InvalidArgumentError, match=r"cut\.npy: the array cannot be read"):
        read_npy(str(path))


@NEEDS_LINKS
def test_a_text_replaces_a_file_whole_and_is_written_through_links(tmp_path: Path) -> None:
    path, link = tmp_path / "page.html", tmp_path / "link.html"
    write_text(path, "short")
    link.symlink_to(path)
    write_text(link, "ä longer text")
    assert path.read_text("utf-8") == "ä longer text"
    assert link.is_symlink()
    assert sorted(other.name for other in tmp_path.iterdir()) == ["link.html", "page.html"]


@NEEDS_LINKS
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_reported_with_the_files_name(tmp_path: Path) -> None:
    link = tmp_path / "page.html"
    link.symlink_to("/dev/full")
    check_writable(str(link))  # opening a device may have effects: it is not tried
    with pytest.raises(InvalidArgumentError, match=r"page\.html: it cannot be written: No space"):
        write_text(link, "text")


def full(*_: object, **__: object) -> None:
    """Fail as on a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failed_write_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    write_text(path, "before")
    monkeypatch.setattr("armpy.store.owned_files.os.replace", full)
    with pytest.raises(InvalidArgumentError, match=r"No space left.*has free space"):
        write_text(path, "after")
    assert [(other.name, other.read_text()) for other in tmp_path.iterdir()] == [
        ("page.html", "before")
    ]


def test_trying_an_output_leaves_nothing_and_changes_nothing(tmp_path: Path) -> None:
    check_writable(str(tmp_path / "new" / "deep"))
    check_writable(str(tmp_path))
    assert not [*tmp_path.iterdir()]
    (tmp_path / "file").write_text("kept")
    check_writable(str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "kept"
    with pytest.raises(InvalidArgumentError, match=r"file.deep: it cannot be written: No"):
        check_writable(str(tmp_path / "file" / "deep"))


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [("run", "--output", "out"), ("profile", "-o", "g.json")],
)
def test_outputs_are_tried_before_the_model_is_loaded(
    command: str,
    option: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("armpy.cli.files.tempfile.TemporaryFile", full)
    monkeypatch.setattr("armpy.cli.load_model.armpy.load", None)
    model = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
    assert armpy_command([command, str(model), option, str(tmp_path / name)]) == 2
    assert f"{name}: it cannot be written: No space left" in capsys.readouterr().err
