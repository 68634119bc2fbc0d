"""A page whose blocks are wrong is caught, at the block that is wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from armpy_testing.installed import skip_without
from tests.support.walkthrough import Reader

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
