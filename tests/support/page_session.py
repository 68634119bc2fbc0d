"""A process that runs the Python blocks of a page one after the other, as a notebook would.

It reads one JSON object a line, ``{"file", "line", "text"}``, and answers with one, ``{"output",
"error"}``: the block's output, and the traceback of its error.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import linecache
import sys
import traceback


def run(file: str, line: int, text: str, names: dict[str, object]) -> dict[str, str]:
    """Run one block whose first line is the given one of its page."""
    source = "\n" * (line - 1) + text
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    error, printed = "", io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            code = compile(source, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            waited = eval(code, names)
            if inspect.iscoroutine(waited):
                asyncio.run(_finish(waited))
        except BaseException:  # noqa: BLE001  # whatever it is, the page is wrong
            error = traceback.format_exc()
    return {"output": printed.getvalue(), "error": error}


async def _finish(waited: object) -> None:
    """Wait for a block with ``await`` in it."""
    assert inspect.isawaitable(waited)
    await waited


def main() -> None:
    """Run blocks until there are no more."""
    names = sys.modules["__main__"].__dict__
    answers = sys.stdout
    for request in sys.stdin:
        answer = run(**json.loads(request), names=names)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
