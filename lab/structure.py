"""Counts the tokens of the tree against its one budget, and checks rules that no linter has.

Usage::

    python lab/structure.py [--check]

Prints tokens and lines of code of each package and each folder of tests. Docstrings, comments,
blank lines and imports are not counted, so that none is dropped to make room. With ``--check`` a
tree above its budget fails, as do imports by extensions of modules that no third party is offered,
and questions which system this is, where ``lab/structure.toml`` gives no reason for them.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SETTINGS = Path(__file__).with_suffix(".toml")

SYSTEM_NAMES = frozenset({"sys.platform", "os.name", "platform.system"})
"""What says which system this is. What a module or library has is asked with `hasattr`."""

MODULES_OF_ONE_SYSTEM = frozenset(
    {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty", "msvcrt", "winreg", "_winapi"}
)

_COUNTED = frozenset({tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING})
# Since Python 3.12 the tokens of an f-string are told apart; it counts as one, as before.
_F_STRING_BEGIN = getattr(tokenize, "FSTRING_START", -1)
_F_STRING_END = getattr(tokenize, "FSTRING_END", -1)


@dataclass(frozen=True)
class Source:
    """A file, by its path from the root, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, self.path)

    @property
    def group(self) -> str:
        """The package, or the folder of tests, that the file is counted with."""
        folders = self.path.split("/")[:-1]
        if folders[:2] == ["backends", "dynamic_examples"]:
            return "/".join(folders[:2])
        depth = {"armpy": 2, "backends": 3, "extensions": 3}.get(self.path.split("/")[0], 1)
        return "/".join(folders[:depth]) or "."

    @property
    def module(self) -> str:
        """The dotted name by which it is imported, if it belongs to a package; else empty."""
        match = re.match(r"(?:(?:backends|extensions)/\w+/)?(armpy\w*/.*|armpy\w*)\.py", self.path)
        return match[1].removesuffix("/__init__").replace("/", ".") if match else ""

    @cached_property
    def _free_lines(self) -> frozenset[int]:
        """Numbers of the lines of docstrings and imports."""
        return frozenset(
            line
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            or (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            )
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        )

    def count(self) -> tuple[int, int]:
        """Tokens, and lines that have any."""
        tokens, lines, depth = 0, set[int](), 0
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            line = token.start[0]
            depth += (token.type == _F_STRING_BEGIN) - (token.type == _F_STRING_END)
            is_counted = not depth and (token.type in _COUNTED or token.type == _F_STRING_END)
            if is_counted and line not in self._free_lines:
                tokens += 1
                lines.add(line)
        return tokens, len(lines)

    def imports(self) -> Iterator[tuple[int, str]]:
        """Lines of imports, and the dotted names that are imported there."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def read_settings() -> Mapping[str, Any]:  # Any: TOML
    """What ``structure.toml`` says."""
    return tomllib.loads(SETTINGS.read_text("utf-8"))


def read_tree(root: Path) -> list[Source]:
    """All files of Python that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    paths = [root / name for name in sorted(set(names.split("\0"))) if name]
    return [
        Source(path.relative_to(root).as_posix(), path.read_text("utf-8"))
        for path in paths
        if path.is_file() and "SyntaxError" not in path.name
    ]


def internal_imports(sources: list[Source], settings: Mapping[str, Any]) -> list[str]:
    """Imports by extensions of what is neither offered nor given a reason; reasons without any."""
    offered = re.compile("|".join(settings["offered_to_extensions"]))
    reasons: Mapping[str, str] = settings["internal_modules"]
    problems, used = list[str](), set[str]()
    for source in sources:
        if not source.path.startswith("extensions/") or not source.module:
            continue
        for line, name in source.imports():
            module = name.rpartition(".")[0] or name
            if name.split(".")[0] != "armpy" or offered.fullmatch(module):
                continue
            around = [reason for reason in reasons if f"{name}.".startswith(f"{reason}.")]
            used.update(around)
            if not around:
                problems.append(f"{source.path}:{line}: {name} is offered to no third party")
    unused = sorted(reasons.keys() - used)
    return [*problems, *(f"internal_modules: no extension imports {name}" for name in unused)]


def system_questions(sources: list[Source], settings: Mapping[str, Any]) -> list[str]:
    """Questions which system this is, outside of modules of a concern; idle such modules."""
    concerns: Mapping[str, str] = settings["systems"]
    problems, asking = list[str](), set[str]()
    for source in sources:
        if not source.module:
            continue
        questions = [
            (node.lineno, ast.unparse(node))
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Attribute) and ast.unparse(node) in SYSTEM_NAMES
        ]
        questions += [
            (line, name)
            for line, name in source.imports()
            if name.partition(".")[0] in MODULES_OF_ONE_SYSTEM or name in SYSTEM_NAMES
        ]
        if source.module in concerns:
            asking.update([source.module] if questions else [])
        else:
            problems += [f"{source.path}:{line}: {name}" for line, name in sorted(questions)]
    return [*problems, *(f"systems: {name} asks for none" for name in concerns.keys() - asking)]


def main(arguments: list[str] | None = None) -> int:
    """Print the table and, with ``--check``, the problems; 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if there is a problem")
    is_check = parser.parse_args(arguments).check
    settings, sources = read_settings(), read_tree(ROOT)
    tokens, lines = Counter[str](), Counter[str]()
    with ProcessPoolExecutor() as processes:
        for source, count in zip(
            sources, processes.map(Source.count, sources, chunksize=50), strict=True
        ):
            tokens[source.group] += count[0]
            lines[source.group] += count[1]
    for group in sorted(tokens):
        print(f"{group:44s} {tokens[group]:9,d} tokens {lines[group]:7,d} lines")
    total, budget = tokens.total(), settings["tokens"]
    print(f"{'total':44s} {total:9,d} tokens {lines.total():7,d} lines; budget {budget:,d} tokens")
    problems = [*internal_imports(sources, settings), *system_questions(sources, settings)]
    if total > budget:
        problems.append(
            f"the tree has {total:,d} tokens. Expected at most {budget:,d}. Remove some, or raise "
            f"the budget in {SETTINGS.name} in a commit that says why nothing can go."
        )
    if is_check:
        print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if is_check and problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
