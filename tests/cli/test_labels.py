from __future__ import annotations

from pathlib import Path

import pytest

from armpy.cli.pictures.labels import Labels, parse_labels, read_labels
from armpy.errors import InvalidArgumentError


def test_each_line_is_a_label() -> None:
    labels = parse_labels("background\ntench, Tinca tinca\r\ngoldfish\n", "x")
    assert labels.names == {0: "background", 1: "tench, Tinca tinca", 2: "goldfish"}


def test_an_empty_line_between_labels_counts_and_one_at_the_end_does_not() -> None:
    labels = parse_labels("a\n\nc\n\n\n", "x")
    assert labels.count == 3
    assert [labels.name(i) for i in range(3)] == ["a", "", "c"]


@pytest.mark.parametrize("text", ["1 cat\n0 dog", "0: dog\n1: cat\n", "0,dog\n\n1,cat"])
def test_an_index_before_each_label_is_taken(text: str) -> None:
    assert parse_labels(text, "x").names == {0: "dog", 1: "cat"}


def test_numbers_are_names_unless_every_line_has_an_index() -> None:
    assert parse_labels("7\n8", "x").names == {0: "7", 1: "8"}
    assert parse_labels("1 series\nother", "x").names == {0: "1 series", 1: "other"}


def test_an_index_that_comes_twice_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="x: two labels have the same index"):
        parse_labels("1 a\n1 b", "x")


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_is_rejected(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="x: the label file is empty"):
        parse_labels(text, "x")


def test_fewer_labels_than_classes_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="Expected 3 labels; got 2"):
        Labels({0: "a", 1: "b"}).for_classes(3)


def test_an_additional_background_at_the_beginning_is_left_out() -> None:
    labels = Labels({0: "Background", 1: "tench", 2: "goldfish"})
    assert labels.for_classes(2).names == {0: "tench", 1: "goldfish"}
    assert labels.for_classes(3) is labels


def test_more_labels_than_classes_stay_as_they_are() -> None:
    labels = Labels({0: "a", 1: "b", 2: "c"})
    assert labels.for_classes(2) is labels


def test_a_file_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes(b"\xef\xbb\xbfVogel\nK\xc3\xa4fer\n")
    assert read_labels(str(path)).names == {0: "Vogel", 1: "Käfer"}


def test_a_file_that_is_no_text_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "labels.bin"
    path.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InvalidArgumentError, match=r"labels\.bin: not a text file"):
        read_labels(str(path))


def test_a_file_that_is_too_large_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armpy.cli.pictures.labels._LARGEST_FILE_BYTES", 3)
    path = tmp_path / "labels.txt"
    path.write_text("abcd")
    with pytest.raises(InvalidArgumentError, match="too large for a label file"):
        read_labels(str(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="nothing: cannot be read: No such file"):
        read_labels(str(tmp_path / "nothing"))
