"""What pictures show, and how often a model is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy.cli.pictures.labels import Labels
from armpy.errors import InvalidArgumentError
from armpy_tools.pictures.ground_truth import (
    AnswerCounter,
    Classes,
    Judgement,
    Truths,
    read_truths,
)

ANIMALS = Labels({0: "tabby, tabby cat", 1: "Egyptian cat", 2: "crane, bird", 3: "crane"})


def entries(folder: Path, text: str) -> tuple[tuple[str, str], ...]:
    (folder / "truth.csv").write_text(text)
    return read_truths(str(folder / "truth.csv")).entries


@pytest.mark.parametrize(
    "text",
    [
        "a b.png,cat\nc.png,3\n",
        "file,label\na b.png,cat\nc.png,3\n",
        "id;Class;Path\n7;cat;a b.png\n8;3;c.png\n",
        "a b.png\tcat\nc.png\t3",
        "# made by hand\na b.png cat\n\nc.png 3\n",
        '\ufeff"a b.png","cat"\r\n"c.png","3"\r\n',
    ],
)
def test_the_usual_forms_of_the_file_are_read(tmp_path: Path, text: str) -> None:
    assert entries(tmp_path, text) == (("a b.png", "cat"), ("c.png", "3"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a.png,cat\nb.png\n", r"entry 2: a line has no file or no label.*got 'b\.png'"),
        (",cat\n", "entry 1: a line has no file"),
    ],
)
def test_a_file_that_says_nothing_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        entries(tmp_path, text)
    with pytest.raises(InvalidArgumentError, match=r"none\.csv: cannot be read"):
        read_truths(str(tmp_path / "none.csv"))


def test_pictures_lie_beside_the_file_of_truths(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    truths = Truths(str(tmp_path / "truth.csv"), (("a.png", "cat"),))
    assert truths.pictures == [str(tmp_path / "a.png")]


def test_a_picture_is_found_by_its_path_its_name_or_its_stem() -> None:
    truths = Truths("t.csv", (("x/a.png", "1"), ("y/a.png", "2"), ("b", "3"), ("z/c.png", "4")))
    paths = ["x/a.png", "y/a.png", "other/a.png", "other/b.jpg", "c.png", "d.png"]
    assert truths.labels_of(paths) == ["1", "2", "", "3", "4", ""]


def test_folders_are_classes() -> None:
    assert read_truths("folders").labels_of(["x/cat/1.png", "dog/2.png"]) == ["cat", "dog"]


def test_a_class_is_found_by_any_of_its_names_or_its_index() -> None:
    classes = Classes(ANIMALS, 4, "t.csv")
    indexes = [classes.index(text) for text in ("Tabby Cat", "egyptian_cat", "crane", "bird", "0")]
    assert indexes == [0, 1, 3, 2, 0]
    assert Classes(None, 4, "t.csv").index("2") == 2


def test_a_name_counts_before_an_index() -> None:
    assert Classes(Labels({0: "1", 1: "0"}), 2, "t.csv").index("1") == 0


@pytest.mark.parametrize(
    ("labels", "text", "fix"),
    [
        (ANIMALS, "egyptain cat", "Did you mean 'Egyptian cat'"),
        (ANIMALS, "4", "Give a label or an index"),
        (None, "cat", "Name the classes with labels"),
    ],
)
def test_what_is_no_class_is_an_error(labels: Labels | None, text: str, fix: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=f"'{text}' is not a class.*index below 4.*{fix}"
    ):
        Classes(labels, 4, "t.csv").index(text)


def test_accuracy_counts_what_is_known() -> None:
    judged = [Judgement(0, 0, 0), Judgement(0, 1, 4), Judgement(2, 1, 5), None, Judgement(0, 0, 0)]
    answers = AnswerCounter()
    for judgement in judged:
        answers.add(judgement)
    accuracy = answers.accuracy(Classes(ANIMALS, 4, "t.csv"))
    assert (accuracy.pictures, accuracy.top1, accuracy.top5, accuracy.without_truth) == (4, 2, 3, 1)
    assert (accuracy.top1_share, accuracy.top5_share) == (0.5, 0.75)
    assert [(c.truth, c.predicted, c.count) for c in accuracy.confusion] == [
        ("tabby, tabby cat", "tabby, tabby cat", 2),
        ("tabby, tabby cat", "Egyptian cat", 1),
        ("crane, bird", "Egyptian cat", 1),
    ]
