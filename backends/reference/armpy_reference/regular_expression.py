"""Regular expressions in RE2's syntax, by the package google-re2."""

from __future__ import annotations

from armpy.core.installation import install_command
from armpy.core.strings import encoded


class RegularExpression:
    """A regular expression, whose searches take a time by the length of the text.

    Parameters
    ----------
    pattern : str

    Raises
    ------
    ModuleNotFoundError
        If google-re2 is not installed.
    ValueError
        If RE2 refuses the pattern.

    Notes
    -----
    Of the matches that begin first, the longest counts. Texts are bytes in UTF-8;
    other bytes match no character.

    References
    ----------
    RE2, "Syntax".
    """

    def __init__(self, pattern: str) -> None:
        import re2  # noqa: PLC0415 - an extra

        options = re2.Options()
        options.longest_match = True
        options.log_errors = False
        try:
            self._expression = re2.compile(encoded(pattern), options)
        except re2.error as error:
            raise ValueError(error.args[0].decode(errors="replace")) from error

    def matches(self, text: bytes) -> bool:
        """Return whether the pattern matches a text as a whole."""
        return self._expression.fullmatch(text) is not None

    def search(self, text: bytes, position: int) -> tuple[int, int] | None:
        """Return begin and end of the first match from a position on; None if there is none."""
        match = self._expression.search(text, position)
        return None if match is None else match.span()


def problem_of(pattern: str) -> str:
    """Why a pattern cannot be matched; empty if it can."""
    try:
        RegularExpression(pattern)
    except ModuleNotFoundError:
        install = install_command({"armpy[re2]": "."})
        return f"regular expressions need the package google-re2. Run: {install}"
    except ValueError as error:
        return f"the pattern is not a regular expression of RE2: {error}"
    return ""
