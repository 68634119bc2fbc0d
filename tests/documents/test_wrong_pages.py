"""A page whose blocks are wrong is caught, at the block that is wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from armpy_testing.installed import skip_without
from tests.support.pages import blocks
from tests.support.walkthrough import Reader, first_missing

skip_without("click", "pillow")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="pages are written for a POSIX shell")

RIGHT = """\
```python
import asyncio
import numpy as np
total = np.add(1, 2)
print("sum", total)
```

```text output
sum ...
```

```python
await asyncio.sleep(0)
assert total == 3
```

```console
$ printf 'one\\ntwo 2.5\\n'
two ...
```

```sh
echo first
echo second > file.txt
```

```python
assert open("file.txt").read() == "second\\n"
```

<!-- not run: takes minutes -->
```sh
exit 1
```

<!-- run nightly: takes minutes -->
```sh
cd /
WORD=five; export LATER="$WORD"
```

<!-- run nightly: takes minutes -->
```sh
test "$PWD" = / -a "$WORD $LATER" = "five five"
```

<!-- run where installed: no_such_module_anywhere -->
```python
import no_such_module_anywhere
```
"""


def follow(text: str, folder: Path, *, nightly: bool = False) -> None:
    """Follow a page of this text."""
    page = folder / "page.md"
    page.write_text(text, "utf-8")
    Reader(page, folder, nightly=nightly).read()


@pytest.mark.parametrize("nightly", [False, True])
def test_a_right_page_passes(nightly: bool, tmp_path: Path) -> None:
    follow(RIGHT, tmp_path, nightly=nightly)


def test_long_blocks_are_run_by_night_and_skipped_by_day(tmp_path: Path) -> None:
    text = "<!-- run nightly: takes minutes -->\n```sh\nexit 3\n```\n"
    follow(text, tmp_path)
    night = tmp_path / "night"
    night.mkdir()
    with pytest.raises(AssertionError, match="exit code 3"):
        follow(text, night, nightly=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("np.add(1, 2)", "np.no_such(1, 2)", r"page\.md:1\n(.|\n)*line 4.*\n(.|\n)*no_such"),
        ("total == 3", "total == 4", r"page\.md:12\n(.|\n)*line 14(.|\n)*AssertionError"),
        ("sum ...", "difference ...", r"page\.md:8 shows: difference"),
        ("two ...", "three ...", r"page\.md:17: (.|\n)*The page shows: three"),
        ("$ printf", "$ no-such-program", r"page\.md:17: (.|\n)*not found"),
        ("echo first", "false", r"page\.md:22: exit code 1"),
        ("```console", "```java", r"page\.md:17: unknown kind of block 'java'"),
        ("<!-- not run: takes minutes -->\n", "", r"page\.md:3\d: exit code 1"),
        ("import asyncio", "import os; os._exit(3)", r"page\.md:1: the process ended with code 3"),
    ],
)
def test_a_wrong_block_is_caught_where_it_stands(
    right: str, wrong: str, message: str, tmp_path: Path
) -> None:
    assert right in RIGHT
    with pytest.raises(AssertionError) as caught:
        follow(RIGHT.replace(right, wrong, 1), tmp_path)
    assert re.search(message, str(caught.value)), caught.value


def test_marks_and_settings_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(RIGHT, "utf-8")
    page_blocks = blocks(page)
    assert [block.not_run for block in page_blocks][-4:] == ["takes minutes", "", "", ""]
    assert [block.nightly for block in page_blocks][-3:] == ["takes minutes", "takes minutes", ""]
    assert page_blocks[-1].needs == ("no_such_module_anywhere",)
    assert page_blocks[1].settings == {"output": ""}


def test_lines_are_found_in_order_and_points_stand_for_anything() -> None:
    output = "one  two\nthree 3.5 four\nfive\n"
    assert first_missing(["one two", "three ... four", "five"], output) is None
    assert first_missing(["five", "one two"], output) == "one two"
    assert first_missing(["three 3x5 four"], output) == "three 3x5 four"


def test_measured_numbers_may_differ_and_others_may_not() -> None:
    output = "time: 0.34 s with reading them, 12 pictures/s\nfound: 20 kernels\n3 layers\n"
    assert first_missing(["time: 1.2 s with reading them, 840.1 pictures/s"], output) is None
    assert first_missing(["found: 9 kernels"], output) is None
    assert first_missing(["time: 0.34 h"], output) == "time: 0.34 h"
    assert first_missing(["4 layers"], output) == "4 layers"


def test_a_long_line_of_an_output_may_be_wrapped() -> None:
    output = "placement: 3 layers: A 1, B 2; 1 fell back: x refused by A\nnext line\n"
    lines = ["placement: 3 layers: A 1,", "B 2; 1 fell back:", "x refused by A", "next line"]
    assert first_missing(lines, output) is None
    assert first_missing([*lines[:1], "B 3; 1 fell back:"], output) == "B 3; 1 fell back:"
    assert first_missing(["1 fell back:", "B 2;"], output) == "B 2;"


def test_sums_of_cases_may_differ_and_failures_may_not() -> None:
    output = "A: 45 passed, 7 answered elsewhere, 313 unsupported in 25.7 s\n"
    page = "A: 46 passed, 8 answered elsewhere, 9 unsupported in 1.2 s"
    assert first_missing([page], output) is None
    failed = "A: 46 passed, 8 answered elsewhere, 9 unsupported, 1 failed in 1.2 s"
    assert first_missing([failed], output) == failed
