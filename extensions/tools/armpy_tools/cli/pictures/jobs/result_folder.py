"""Folders with a result file for each picture, by which an interrupted job goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armpy.cli.files import writing
from armpy.core.documents import plain
from armpy.errors import InvalidArgumentError
from armpy.store.owned_files import replacing
from armpy_tools.cli.pictures.picture_result import EarlierPart
from armpy_tools.pictures.ground_truth import AnswerCounter, Judgement

if TYPE_CHECKING:
    from armpy_tools.cli.pictures.picture_result import PictureOutcome


class ResultFolder:
    """A folder with ``NAME.json`` for each picture.

    Parameters
    ----------
    folder : str
        Made with its parents if it is missing.
    names : mapping of str to str
        Names of the result files without suffix, by the pictures' paths.
    facts : mapping of str to str
        All that the results depend on, besides the pictures.

    Notes
    -----
    A result file is one line of JSON: the document of ``--json`` for the picture, with
    ``judgement`` (indexes of the true and the best class, rank of the true one) and ``made_with``
    (the facts). It replaces an earlier one in one step, after the other files of its picture are
    written: where it is there, they are whole.
    """

    def __init__(self, folder: str, names: Mapping[str, str], facts: Mapping[str, str]) -> None:
        self._folder = Path(folder)
        self._names = names
        self._facts = dict(facts)

    def path_of(self, picture: str) -> Path:
        """The result file of a picture."""
        return self._folder / f"{self._names[picture]}.json"

    def store(self, outcomes: Sequence[PictureOutcome]) -> None:
        """Write the result files of pictures that the model was given together."""
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        for outcome in outcomes:
            judgement = outcome.judgement and astuple(outcome.judgement)
            more = {"judgement": judgement, "made_with": self._facts}
            document = plain({**asdict(outcome.result), **more})
            text = json.dumps(document, allow_nan=False) + "\n"
            path = self.path_of(outcome.result.file)
            with writing(path), replacing(path) as file:
                file.write(text.encode())

    def find_earlier(
        self, pictures: Sequence[str], truths: Sequence[str]
    ) -> tuple[list[str], EarlierPart]:
        """Pictures that are still to be run, and the results of the others.

        Parameters
        ----------
        pictures : sequence of str
            Paths, at least one.
        truths : sequence of str
            What each shows; empty where that is not known.

        Raises
        ------
        InvalidArgumentError
            If a result was made with another model or other options.

        Notes
        -----
        A picture that could not be used is tried again. One picture is always run, as the report
        needs a run of the model.
        """
        left: list[str] = []
        judgements: list[Judgement | None] = []
        last: Judgement | None = None
        for picture, truth in zip(pictures, truths, strict=True):
            document = self._read(picture, truth)
            if document is None:
                left.append(picture)
                continue
            last = None if document["judgement"] is None else Judgement(*document["judgement"])
            judgements.append(last)
        if not left:
            left.append(pictures[-1])
            judgements.pop()
        answers = AnswerCounter()
        if any(truths):
            for judgement in judgements:
                answers.add(judgement)
        return left, EarlierPart(len(judgements), answers)

    def _read(self, picture: str, truth: str) -> dict[str, Any] | None:  # Any: as JSON has them
        """The document of a picture's whole result; None if it has to be computed."""
        path = self.path_of(picture)
        if not path.is_file():
            return None
        try:
            document = json.loads(path.read_bytes())
        except (ValueError, RecursionError):  # torn, or a file of another kind
            return None
        if not isinstance(document, dict) or not isinstance(document.get("made_with"), dict):
            return None
        self._check_same(path, document["made_with"])
        is_same = (document.get("file"), document.get("truth")) == (picture, truth)
        is_usable = is_same and not document.get("error") and "judgement" in document
        return document if is_usable and all(map(_is_whole, document.get("files", ()))) else None

    def _check_same(self, path: Path, before: Mapping[str, str]) -> None:
        """Check that a result was made with the same model and options."""
        now = self._facts
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if names:
            raise InvalidArgumentError(
                f"the result was made otherwise: it differs in {', '.join(names)}",
                where=f"--resume: {path}",
                expected="; ".join(f"{name}: {now.get(name, 'not given')}" for name in names),
                actual="; ".join(f"{name}: {before.get(name, 'not given')}" for name in names),
                fix="Use the earlier model and options, name another folder, or leave --resume out",
            )


def _is_whole(path: str) -> bool:
    """Return whether a file is there with all that its kind lets one see at once."""
    try:
        if path.endswith(".npy"):
            np.load(path, mmap_mode="r", allow_pickle=False)
        return os.path.getsize(path) > 0
    except (OSError, ValueError, EOFError):
        return False
