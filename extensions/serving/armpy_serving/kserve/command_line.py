"""Command lines with long lists of options: short errors, and hyphens for underscores."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from armpy.errors import did_you_mean

_UNKNOWN = "unrecognized arguments: "


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
        word = message.removeprefix(_UNKNOWN).partition(" ")[0].partition("=")[0]
        fix = did_you_mean(word, self._option_string_actions) if _UNKNOWN in message else ""
        if fix == "" and _UNKNOWN in message and not word.startswith("-"):
            fix = "Write the option before it, as --model_dir before a model's path."
        if message.startswith("ambiguous option"):
            meant = message.partition(" match ")[2].split(", ")
            fix = "; ".join(f"{name} is {self._help_of(name)}" for name in meant) + "."
        text = f"{message}. {fix}" if fix else f"{message}."
        self.exit(2, f"Error: {text} See {self.prog} --help\n")

    def _help_of(self, name: str) -> str:
        """The help of an option as the end of a sentence."""
        text = self._option_string_actions[name].help or "another one"
        return text[0].lower() + text[1:].rstrip(".")

    def _spelled(self, word: str) -> str:
        """An option with underscores for its hyphens; every other word as it is."""
        name, equals, value = word.partition("=")
        option = f"--{name[2:].replace('-', '_')}"
        is_option = name.startswith("--") and option in self._option_string_actions
        return f"{option}{equals}{value}" if is_option else word
