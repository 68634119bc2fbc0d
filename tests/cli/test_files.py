from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy.cli.files import file_stems, read_inputs, read_npy, split_input, write_outputs
from armpy.errors import InvalidArgumentError


def test_names_may_hold_the_sign_that_ends_them() -> None:
    assert split_input("a=b=x.npy", ["a=b", "a"]) == ("a=b", "x.npy")
    assert split_input("a=b=x.npy", ["a"]) == ("a", "b=x.npy")
    assert split_input("=x.npy", [""]) == ("", "x.npy")


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no such input.*'a', 'b'; got 'c'"):
        split_input("c=x.npy", ["a", "b"])
    with pytest.raises(InvalidArgumentError, match="Did you mean 'image'"):
        split_input("imag=x.npy", ["image", "mask"])
    with pytest.raises(InvalidArgumentError, match="not of the form name=file"):
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
    assert read_inputs([f"a={path}"], ["a"])["a"].tolist() == [0, 1, 2]
    with pytest.raises(InvalidArgumentError, match="'a' is given twice"):
        read_inputs([f"a={path}", f"a={path}"], ["a"])


@pytest.mark.parametrize("array", [np.float32(3), np.zeros((0, 2)), np.arange(6).reshape(2, 3).T])
def test_arrays_of_every_shape_are_read(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", array)
    found = read_npy(str(tmp_path / "x.npy"))
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


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


def test_a_header_that_ends_early_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cut.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00\x05\x00{[(-\n")
    with pytest.raises(InvalidArgumentError, match=r"cut\.npy: the array cannot be read"):
        read_npy(str(path))
