"""Words of commands, in quotes where a shell needs them."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable

_PLAIN = re.compile(r"[\w@+=:,./\\\[\]-]+")
"""What Windows' shells read as it is."""


def shell_word(word: str) -> str:
    """Return a word of a command, in quotes if the shell needs them."""
    if sys.platform == "win32":
        # Single quotes are ordinary characters for cmd.exe.
        return word if _PLAIN.fullmatch(word) else '"{}"'.format(word.replace('"', '\\"'))
    return shlex.quote(word)


def shell_command(words: Iterable[str]) -> str:
    """Return a command of some words."""
    return " ".join(map(shell_word, words))
