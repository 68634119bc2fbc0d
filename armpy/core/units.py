"""Numbers and types in words, for people."""

from __future__ import annotations

import re

_BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_COUNTS = ((1e9, " G"), (1e6, " M"), (1e3, " k"))
_QUANTIZED = re.compile(r"Q[A-Z]*SYMM_([US])(\d+)")
_INTEGER = re.compile(r"(UN)?SIGNED(\d+)")
_SHORT = {"BOOLEAN": "bool", "FLOAT": "float32", "DOUBLE": "float64"}


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 layer``, ``2 layers``; the noun with an s is the plural unless it is given."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def bytes_text(size_bytes: float) -> str:
    """``3.4 MiB``: at most three digits."""
    for unit, name in _BYTES:
        if abs(size_bytes) >= unit:
            return f"{number_text(size_bytes / unit)} {name}"
    return f"{size_bytes:.0f} B"


def count_text(number: float) -> str:
    """``3.4 M``: at most three digits."""
    for unit, name in _COUNTS:
        if abs(number) >= unit:
            return f"{number_text(number / unit)}{name}"
    return f"{number:.4g}"


def time_text(us: float) -> str:
    """``3.40 ms``: three digits, as times are measured."""
    if us >= 999_500:
        unit, name = 1e6, "s"
    elif us >= 999.5:
        unit, name = 1e3, "ms"
    else:
        unit, name = 1.0, "µs"
    number = us / unit
    if number < 0.1:
        return f"{number:.2g} {name}"
    decimals = sum(number < limit for limit in (0.9995, 9.995, 99.95))
    return f"{number:,.{decimals}f} {name}"


def number_text(number: float) -> str:
    """``3.4``: at most three digits, but all before the point, and no zeros at the end."""
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:,.0f}"


def percent_text(part: float) -> str:
    """``3.4 %``."""
    return f"{100 * part:.1f} %"


def type_name(name: str) -> str:
    """The common name of a data type, such as ``uint8``.

    Parameters
    ----------
    name : str
        Of a `armpy.DataType`, or of a type in a model file.
    """
    if match := _QUANTIZED.fullmatch(name):
        return f"{'u' if match[1] == 'U' else ''}int{match[2]}"
    if match := _INTEGER.fullmatch(name):
        return f"{'u' if match[1] else ''}int{match[2]}"
    return _SHORT.get(name, name.lower())


def printable(text: str) -> str:
    """Text whose control characters are escaped; names in files may hold any."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
