"""The digits that come with armpy-testing are those of the example."""

from __future__ import annotations

from armpy_testing import digits
from armpy_testing.checkout import ROOT


def test_files_for_tests_are_those_of_the_example() -> None:
    kinds = (".tflite", ".txt", ".png")
    copies = [path for path in digits.FOLDER.rglob("*.*") if path.suffix in kinds]
    assert len(copies) == 12
    example = ROOT / "examples" / "digits"
    for path in copies:
        assert path.read_bytes() == (example / path.relative_to(digits.FOLDER)).read_bytes()
