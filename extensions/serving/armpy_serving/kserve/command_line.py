"""Command lines with long lists of options: short errors, and hyphens for underscores."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn


class CommandLineParser(argparse.ArgumentParser):
    """A parser that takes ``--model-dir`` for ``--model_dir``, and whose errors are one line."""

    def parse_known_args(  # type: ignore[override]  # argparse has overloads by namespace
        self,
        args: Sequence[str] | None = None,
        namespace: Any = None,  # Any: argparse's
    ) -> tuple[Any, list[str]]:
        """Parse the options, each spelled as it is known."""
        words = sys.argv[1:] if args is None else args
        return super().parse_known_args([self._spelled(word) for word in words], namespace)

    def error(self, message: str) -> NoReturn:
        """End with one line, in place of one after a list of all options."""
        self.exit(2, f"Error: {message}. See {self.prog} --help\n")

    def _spelled(self, word: str) -> str:
        """An option with underscores for its hyphens; every other word as it is."""
        name, equals, value = word.partition("=")
        option = f"--{name[2:].replace('-', '_')}"
        is_option = name.startswith("--") and option in self._option_string_actions
        return f"{option}{equals}{value}" if is_option else word
