"""C's functions of complex numbers for Windows' programs under Wine, whose C library lacks them.

Notes
-----
NumPy imports them from ``api-ms-win-crt-math-l1-1-0.dll``. Wine resolves this name before any
setting is read, so a library of another name of the same length takes its place: it computes
complex functions by those of MinGW, and hands all others on to Wine's library.
"""

from __future__ import annotations

import re
from pathlib import Path

from emulation.environment import MissingError, run_program

_LIBRARY = b"api-ms-win-crt-math-l1-1-0.dll"
_SUBSTITUTE = b"xpi-ms-win-crt-math-l1-1-0.dll"

_UNARY = (
    *("ccos", "ccosh", "cexp", "csin", "csinh", "ctan", "ctanh", "csqrt", "clog"),
    *("cacos", "cacosh", "casin", "casinh", "catan", "catanh"),
)
_BINARY = ("cpow",)
_REAL = ("cabs", "carg", "creal", "cimag")

# Windows returns complex numbers as structures, which MinGW's functions do not.
_TYPES = """
#include <complex.h>
typedef struct { float re, im; } pair_f;
typedef struct { double re, im; } pair_d;
typedef union { pair_f pair; float _Complex number; } both_f;
typedef union { pair_d pair; double _Complex number; } both_d;
pair_f own__FCbuild(float re, float im) { pair_f pair = {re, im}; return pair; }
pair_d own__Cbuild(double re, double im) { pair_d pair = {re, im}; return pair; }
"""


def add_complex_functions(system: Path, python: Path) -> None:
    """Build the library in a Python's folder, and have all its modules import it.

    Parameters
    ----------
    system : Path
        The root folder of a Debian with MinGW's compiler.
    python : Path
        The folder of Windows' Python, below `system`.
    """
    modules = [path for path in python.rglob("*") if path.suffix in (".pyd", ".dll")]
    importers = [path for path in modules if _LIBRARY in path.read_bytes()]
    source, own = _source()
    forwards = {name: f"ucrtbase.{name}" for name in _offered(system)} | own
    exports = "".join(f"  {name} = {target}\n" for name, target in sorted(forwards.items()))
    (python / "complex.c").write_text(source, "utf-8")
    (python / "complex.def").write_text(
        f'LIBRARY "{_SUBSTITUTE.decode()}"\nEXPORTS\n{exports}', "utf-8"
    )
    folder = f"/{python.relative_to(system)}"
    compiler = ["chroot", str(system), "x86_64-w64-mingw32-gcc", "-O1", "-shared", "-static-libgcc"]
    sources = [f"{folder}/complex.c", f"{folder}/complex.def"]
    run_program([*compiler, "-o", f"{folder}/{_SUBSTITUTE.decode()}", *sources])
    for path in importers:
        path.write_bytes(path.read_bytes().replace(_LIBRARY, _SUBSTITUTE))


def _offered(system: Path) -> set[str]:
    """Return the functions that Wine's C library exports, those that it lacks among them."""
    libraries = sorted(system.glob("usr/lib/*/wine/x86_64-windows/ucrtbase.dll"))
    if not libraries:
        raise MissingError("Wine has no ucrtbase.dll for x86-64")
    inside = f"/{libraries[0].relative_to(system)}"
    text = run_program(["chroot", str(system), "x86_64-w64-mingw32-objdump", "-p", inside])
    _, _, names = text.partition("[Ordinal/Name Pointer] Table")
    return set(re.findall(r"^\t\[.*\s(\w+)$", names, re.MULTILINE))


def _source() -> tuple[str, dict[str, str]]:
    """Return C's source, and the functions to export with their names in it."""
    lines = [_TYPES]
    own = {"_FCbuild": "own__FCbuild", "_Cbuild": "own__Cbuild", "_LCbuild": "own__Cbuild"}
    for suffix, kind, number in (("f", "f", "float"), ("", "d", "double")):
        first = f"both_{kind} x = {{.pair = a}};"
        for name in _UNARY:
            lines.append(
                f"pair_{kind} own_{name}{suffix}(pair_{kind} a) {{ {first} "
                f"x.number = {name}{suffix}(x.number); return x.pair; }}"
            )
        for name in _BINARY:
            lines.append(
                f"pair_{kind} own_{name}{suffix}(pair_{kind} a, pair_{kind} b) {{ {first} "
                f"both_{kind} y = {{.pair = b}}; "
                f"x.number = {name}{suffix}(x.number, y.number); return x.pair; }}"
            )
        for name in _REAL:
            lines.append(
                f"{number} own_{name}{suffix}(pair_{kind} a) {{ {first} "
                f"return {name}{suffix}(x.number); }}"
            )
    for name in (*_UNARY, *_BINARY, *_REAL):
        # A long double is a double on Windows.
        own |= {name: f"own_{name}", f"{name}f": f"own_{name}f", f"{name}l": f"own_{name}"}
    return "\n".join(lines) + "\n", own
