"""Ground truth of pictures, and a model's accuracy against it."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from armpy.cli.pictures.labels import Labels
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError, argument, did_you_mean

FOLDERS = "folders"
"""For a file of truths: the folder that each picture is in is its class."""

_FILE_HEADINGS = ("file", "filename", "file_name", "path", "image", "picture", "name")
_LABEL_HEADINGS = ("label", "class", "truth", "category", "target", "index", "class_id", "label_id")
_DELIMITERS = (",", ";", "\t")
_FIRST = 5
_LARGEST_FILE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Truths:
    """Ground truth of pictures, in words or numbers.

    Parameters
    ----------
    source : str
        Where that is from, for messages.
    entries : tuple of (str, str)
        File and label of each; empty where folders are classes.
    """

    source: str
    entries: tuple[tuple[str, str], ...] = ()

    @property
    def pictures(self) -> list[str]:
        """Paths of the pictures; beside the file of truths, or else from where we are."""
        return [str(self._path(file)) for file, _ in self.entries]

    def _path(self, file: str) -> Path:
        """Path of a file that an entry names."""
        beside = Path(self.source).parent / file
        return beside if beside.exists() or not Path(file).exists() else Path(file)

    def labels_of(self, pictures: Sequence[str]) -> list[str]:
        """The label of each picture; empty where nothing is said about it.

        Notes
        -----
        The same file counts first, then the same name, if only one entry has it.
        """
        if not self.entries:
            return [Path(picture).absolute().parent.name for picture in pictures]
        by_path = {self._path(file).resolve(): label for file, label in self.entries}
        names = Counter(Path(file).name for file, _ in self.entries)
        stems = Counter(Path(file).stem for file, _ in self.entries)
        by_name = {Path(f).name: label for f, label in self.entries if names[Path(f).name] == 1}
        by_stem = {Path(f).stem: label for f, label in self.entries if stems[Path(f).stem] == 1}
        return [
            by_path.get(path.resolve()) or by_name.get(path.name) or by_stem.get(path.stem, "")
            for path in map(Path, pictures)
        ]


def read_truths(source: str) -> Truths:
    """Read a file of truths, or take folders for classes.

    Parameters
    ----------
    source : str
        ``folders``, or the path of a CSV file with a file and its label in each line: a class's
        name or its index. Commas, semicolons, tabs, or blanks may be between them, a first line
        may name the columns.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be read, or has no two columns.
    """
    if source == FOLDERS:
        return Truths(source)
    path = Path(source)
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise InvalidArgumentError("too large for a file of labels", where=source)
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError("not a text file in UTF-8", where=source) from error
    except OSError as error:
        raise InvalidArgumentError(f"cannot be read: {error.strerror}", where=source) from error
    return Truths(source, tuple(_entries(text, source)))


def _entries(text: str, source: str) -> list[tuple[str, str]]:
    """File and label of each line."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise InvalidArgumentError("the file of labels is empty", where=source)
    delimiter = next((sign for sign in _DELIMITERS if sign in lines[0]), None)
    rows = (
        [re.split(r"\s+(?=\S+$)", line.strip()) for line in lines]
        if delimiter is None
        else list(csv.reader(lines, delimiter=delimiter))
    )
    file, label, rows = _columns(rows)
    entries = []
    for number, row in enumerate(rows, 1):
        if len(row) <= max(file, label) or not row[file].strip():
            raise InvalidArgumentError(
                "a line has no file or no label",
                where=f"{source}, entry {number}",
                expected="file,label",
                actual=repr((delimiter or " ").join(row)),
            )
        entries.append((row[file].strip(), row[label].strip()))
    return entries


def _columns(rows: list[list[str]]) -> tuple[int, int, list[list[str]]]:
    """Numbers of the columns of files and labels, and the rows without a heading."""
    heading = [cell.strip().lower() for cell in rows[0]]
    file = next((heading.index(name) for name in _FILE_HEADINGS if name in heading), None)
    label = next((heading.index(name) for name in _LABEL_HEADINGS if name in heading), None)
    if file is None or label is None:
        return 0, 1, rows
    return file, label, rows[1:]


class Classes:
    """Finds classes by what people call them.

    Parameters
    ----------
    labels : Labels, optional
    num_classes : int
        Of the model.
    source : str
        Origin of the requested names, for messages.

    Raises
    ------
    InvalidArgumentError
        If there are fewer labels than classes.
    """

    def __init__(self, labels: Labels | None, num_classes: int, source: str) -> None:
        self.num_classes = num_classes
        self._source = source
        names = labels.for_classes(num_classes).names if labels is not None else {}
        self._names = names
        self._by_name: dict[str, int] = {}
        parts: dict[str, set[int]] = {}
        for index, name in names.items():
            self._by_name.setdefault(_plain(name), index)
            for part in name.split(","):
                parts.setdefault(_plain(part), set()).add(index)
        for part, indexes in parts.items():
            if len(indexes) == 1:
                self._by_name.setdefault(part, next(iter(indexes)))

    def name(self, index: int) -> str:
        """Name of a class, or its index."""
        return self._names.get(index) or str(index)

    def index(self, text: str) -> int:
        """A class by its name, one of the names in its label, or its index.

        Raises
        ------
        InvalidArgumentError
            If there is no such class.
        """
        index = self._by_name.get(_plain(text))
        if index is not None:
            return index
        if re.fullmatch(r"\d{1,9}", text) and int(text) < self.num_classes:
            return int(text)
        named = f"Name the classes with {argument('labels')}"
        fix = "Give a label or an index" if self._names else named
        raise InvalidArgumentError(
            f"'{text}' is not a class of the model",
            where=argument("truth", self._source),
            expected=f"a label or an index below {self.num_classes}",
            fix=did_you_mean(text, map(self.name, self._by_name.values()), fix),
        )


def _plain(name: str) -> str:
    """A name as it is compared: capital letters and underscores do not count."""
    return " ".join(name.replace("_", " ").casefold().split())


@dataclass(frozen=True, slots=True)
class Confusion:
    """Count of one class taken for another one.

    Parameters
    ----------
    truth, predicted : str
        Names, or indexes where there are none.
    count : int
    truth_index, predicted_index : int
    """

    truth: str
    predicted: str
    count: int
    truth_index: int
    predicted_index: int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Accuracy of a model over pictures: top-1, top-5, confusions.

    Parameters
    ----------
    pictures : int
        Those that count: their labels are known, and the model was run on them.
    top1, top5 : int
        How many of them were right at once, and within the first five.
    num_classes : int
        That the model knows.
    without_truth : int
        Pictures of which nothing is known.
    confusion : tuple of Confusion
        By truth and then by count, right answers too.
    """

    pictures: int
    top1: int
    top5: int
    num_classes: int
    without_truth: int
    confusion: tuple[Confusion, ...]

    @property
    def top1_share(self) -> float:
        """Share of pictures that were right at once, 0 to 1."""
        return self.top1 / self.pictures if self.pictures else 0.0

    @property
    def top5_share(self) -> float:
        """Share of pictures that were right within the first five, 0 to 1."""
        return self.top5 / self.pictures if self.pictures else 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of one answer, with what would have been right.

    Parameters
    ----------
    truth, predicted : int
        Classes.
    rank : int
        Place of the right class among the scores, 0 for the best.
    """

    truth: int
    predicted: int
    rank: int


class AnswerCounter:
    """Counts answers, of which nothing else is kept however many there are."""

    def __init__(self) -> None:
        self._known = self._unknown = self._best = self._first = 0
        self._confusion: Counter[tuple[int, int]] = Counter()

    def add(self, answer: Judgement | None) -> None:
        """Count an answer; None stands for a picture of which nothing is known."""
        if answer is None:
            self._unknown += 1
            return
        self._known += 1
        self._best += answer.rank == 0
        self._first += answer.rank < _FIRST
        self._confusion[answer.truth, answer.predicted] += 1

    def accuracy(self, classes: Classes) -> Accuracy:
        """Return the accuracy of the answers up to now."""
        ordered = sorted(
            self._confusion.items(), key=lambda item: (item[0][0], -item[1], item[0][1])
        )
        return Accuracy(
            self._known,
            self._best,
            self._first,
            classes.num_classes,
            self._unknown,
            tuple(Confusion(classes.name(t), classes.name(p), n, t, p) for (t, p), n in ordered),
        )
