"""Counts what makes a tree hard to read, and holds each count against its ceiling.

Usage::

    python scripts/structure.py [--check | --lower | --against REF | --show RULE]

Without an option it prints every rule with its count, its ceiling and its aim, then what is only
reported, and for each package of armpy and each one beside it the files, lines, lines of code and
of docstrings, classes, comments, and the budget of lines of code; then for each folder of tests the
files, lines, and lines of code inside and outside of test functions. ``--show`` lists what a rule
or a report counts, by place. Ceilings and budgets stand in ``scripts/structure.toml``. ``--check``
fails if a count is above its ceiling, or a package above its budget. ``--lower`` lowers ceilings to
the counts. A commit that needs a higher ceiling or budget raises it and says why: nothing else pays
for it. ``--against`` prints the lines of code of each package, and their change since HEAD left a
branch or commit.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tempfile
import tokenize
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
CEILINGS = Path(__file__).with_suffix(".toml")
FILES_PER_FOLDER = 20
EXTENSION_PACKAGES = frozenset(
    path.parent.name for path in ROOT.glob("extensions/*/armpy_*/__init__.py")
)
CLASS_LINES = 400
CLASS_METHODS = 30
PROSE_WIDTH = 100
PAGES = (
    "*.md",
    *(f"{folder}/**/*.md" for folder in ("docs", "backends", "extensions", "examples", "testing")),
)
TESTS = ("tests", "extensions/*/tests", "backends/*/tests", "testing")
PUBLIC_IN_SPITE_OF_THEIR_NAMES = frozenset({"_exit", "_fields", "_replace", "_repr_html_"})
"""Documented names of the standard library and of notebooks."""
OLDER = re.compile(r"deprecat|legacy|backward_compat|_with_options$|_for_network$", re.IGNORECASE)

SYSTEM_NAMES = frozenset({"sys.platform", "os.name", "platform.system"})
"""What says which system this is. What a module or library has is asked with `hasattr`."""
MODULES_OF_ONE_SYSTEM = frozenset(
    {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty", "msvcrt", "winreg", "_winapi"}
)


@dataclass(frozen=True)
class Import:
    """One imported module: its name, the line, and whether a function is around it."""

    target: str
    line: int
    in_function: bool


@dataclass(frozen=True)
class Source:
    """A module of the tree: where it is, how it is imported, and its parsed text."""

    path: Path
    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, str(self.path))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the syntax tree, which most rules look through."""
        return tuple(ast.walk(self.tree))

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__` of a folder."""
        return self.path.name == "__init__.py"

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Everything it imports, wherever in the file; those for types alone count."""
        return tuple(self._imports(self.tree, in_function=False))

    def _imports(self, node: ast.AST, *, in_function: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, child.lineno, in_function)
            elif isinstance(child, ast.ImportFrom):
                base = self._absolute(child)
                # A name may be a module or a part of one: `resolve` takes the longest.
                for alias in child.names:
                    yield Import(f"{base}.{alias.name}", child.lineno, in_function)
            elif not isinstance(child, ast.expr):  # which holds no import
                inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
                yield from self._imports(child, in_function=in_function or inside)

    def _absolute(self, node: ast.ImportFrom) -> str:
        """The module that an `import from` names, relative ones resolved."""
        if not node.level:
            return node.module or ""
        up = node.level - (1 if self.is_package else 0)
        parts = self.name.split(".")
        base = ".".join(parts[: len(parts) - up])
        return f"{base}.{node.module}" if node.module else base

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        """The classes it defines at its top."""
        return tuple(node for node in self.tree.body if isinstance(node, ast.ClassDef))

    @cached_property
    def comments(self) -> int:
        """How many comments say something to a reader; switches for tools are none."""
        tools = re.compile(r"#\s*(noqa|type:|pragma|ruff|mypy|fmt|!|-\*-)")
        with self.path.open("rb") as file:
            return sum(
                token.type == tokenize.COMMENT and not tools.match(token.string)
                for token in tokenize.tokenize(file.readline)
            )

    @cached_property
    def docstring_lines(self) -> frozenset[int]:
        """Numbers of the lines that docstrings take."""
        return frozenset(
            number
            for node in self.nodes
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            for number in lines_of(node)
        )

    @cached_property
    def code(self) -> frozenset[int]:
        """Numbers of lines that are neither empty, nor a comment, docstring or import."""
        imports = {
            number
            for node in self.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for number in lines_of(node)
        }
        return frozenset(
            number
            for number, line in enumerate(self.text.splitlines(), 1)
            if line.strip()
            and not line.lstrip().startswith("#")
            and number not in self.docstring_lines
            and number not in imports
        )

    @property
    def code_lines(self) -> int:
        """How many lines of code it has."""
        return len(self.code)

    @cached_property
    def test_lines(self) -> int:
        """How many lines of code are in functions whose names begin with ``test_``."""
        in_tests = {
            number
            for node in self.nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("test_")
            for number in lines_of(node)
        }
        return len(self.code & in_tests)


def lines_of(node: ast.stmt) -> range:
    """The numbers of the lines that a statement takes."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def package_folders(root: Path) -> list[str]:
    """The folders of armpy, its backends and its extensions, below a checkout."""
    beside = (
        str(path.parent.relative_to(root))
        for group in ("backends", "extensions")
        for path in root.glob(f"{group}/*/armpy_*/__init__.py")
    )
    return ["armpy", *sorted(beside)]


class Tree:
    """All modules of some packages, and their imports of each other.

    Parameters
    ----------
    root : Path
        The checkout.
    packages : iterable of str, optional
        Folders of top-level packages below it; armpy, its backends and its extensions if not given.
    """

    def __init__(self, root: Path, packages: Iterable[str] | None = None) -> None:
        self.root = root
        self.sources: dict[str, Source] = {}
        for package in package_folders(root) if packages is None else packages:
            top = root / package
            for path in sorted(top.rglob("*.py")):
                parts = path.relative_to(top.parent).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                self.sources[name] = Source(path, name, path.read_text(encoding="utf-8"))

    @cached_property
    def tests(self) -> tuple[Source, ...]:
        """The modules of the tests, named by their paths."""
        return tuple(
            Source(path, str(path.relative_to(self.root)), path.read_text(encoding="utf-8"))
            for pattern in TESTS
            for folder in sorted(self.root.glob(pattern))
            for path in sorted(folder.rglob("*.py"))
        )

    def resolve(self, target: str) -> str | None:
        """The module of the tree that an imported name is, or is part of."""
        while target and target not in self.sources:
            target = target.rpartition(".")[0]
        return target or None

    @cached_property
    def folders(self) -> dict[str, list[Source]]:
        """The modules that lie directly in each folder, by the package's name."""
        modules: dict[str, list[Source]] = defaultdict(list)
        for source in self.sources.values():
            if source.is_package:
                modules.setdefault(source.name, [])
            else:
                modules[source.name.rpartition(".")[0]].append(source)
        return dict(modules)

    def circles(self) -> list[str]:
        """Siblings of one folder, files or folders, that import each other in a circle."""
        arrows: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for source in self.sources.values():
            for imported in source.imports:
                target = self.resolve(imported.target)
                if target is None or target == source.name:
                    continue
                ours, theirs = source.name.split("."), target.split(".")
                same = 0
                while same < min(len(ours), len(theirs)) and ours[same] == theirs[same]:
                    same += 1
                # A package's own `__init__` stands above its modules, and is no sibling of them.
                if same < min(len(ours), len(theirs)):
                    arrows[".".join(ours[:same])][ours[same]].add(theirs[same])
        return [
            f"{folder}: {', '.join(sorted(circle))}"
            for folder, graph in sorted(arrows.items())
            for circle in strongly_connected(graph)
            if len(circle) > 1
        ]


def strongly_connected(graph: dict[str, set[str]]) -> list[set[str]]:
    """Split a graph into the largest sets whose members all reach each other.

    References
    ----------
    R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for follower in sorted(graph.get(node, ())):
            if follower not in index:
                visit(follower)
                low[node] = min(low[node], low[follower])
            elif follower in stack:
                low[node] = min(low[node], index[follower])
        if low[node] == index[node]:
            cut = stack.index(node)
            circles.append(set(stack[cut:]))
            del stack[cut:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return circles


def _entries(tree: Tree, _: Settings) -> list[str]:
    names = {name.split(".")[1] for name in tree.sources if name.startswith("armpy.")}
    return sorted(names - {"__main__"})


def _crowded(tree: Tree, settings: Settings) -> list[str]:
    return [
        f"{folder}: {len(files)} files"
        for folder, files in sorted(tree.folders.items())
        if len(files) > FILES_PER_FOLDER and folder not in settings.one_thing_per_file
    ]


def _late_imports(tree: Tree, settings: Settings) -> list[str]:
    return [
        f"{source.name}:{imported.line}: {imported.target}"
        for source in tree.sources.values()
        if source.name not in settings.gates
        for imported in {i.line: i for i in source.imports if i.in_function}.values()
    ]


def _doubled(tree: Tree, settings: Settings) -> list[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for source in tree.sources.values():
        if not source.name.startswith(settings.free_of_names):
            for node in source.classes:
                places[node.name].append(source.name)
    return [f"{name}: {', '.join(at)}" for name, at in sorted(places.items()) if len(at) > 1]


def _chains(tree: Tree, settings: Settings) -> list[str]:
    """Classes two or more steps below a class of the tree that is no contract."""
    bases: dict[str, set[str]] = defaultdict(set)
    defined: set[str] = set()
    for source in tree.sources.values():
        for node in source.classes:
            defined.add(node.name)
            for base in node.bases:
                name = base.value if isinstance(base, ast.Subscript) else base
                bases[node.name].add(ast.unparse(name).rpartition(".")[2])
    contract = re.compile("|".join(settings.bases_to_inherit_from))

    def concrete(name: str) -> set[str]:
        return {b for b in bases[name] if b in defined and not contract.fullmatch(b)}

    return [
        f"{name}({middle}({', '.join(sorted(concrete(middle)))}))"
        for name in sorted(defined)
        for middle in sorted(concrete(name))
        if concrete(middle)
    ]


def _compatibility(tree: Tree, _: Settings) -> list[str]:
    """Definitions that are there for code which was written for something older."""
    definitions = (ast.FunctionDef, ast.ClassDef)
    return [
        f"{source.name}: {node.name}"
        for source in tree.sources.values()
        for node in source.nodes
        if isinstance(node, definitions) and OLDER.search(node.name)
    ]


def _protocols(tree: Tree, _: Settings) -> list[str]:
    return [
        f"{source.name}: {node.name}"
        for source in tree.sources.values()
        if source.name.split(".")[0] == "armpy"
        for node in source.classes
        if any(ast.unparse(base).partition("[")[0].endswith("Protocol") for base in node.bases)
    ]


def _large_classes(tree: Tree, _: Settings) -> list[str]:
    """Classes that hold more than a reader can."""
    classes = []
    for source in tree.sources.values():
        for node in source.classes:
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            names = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
            methods = sum(not name.endswith("__") for name in names)  # operators are no methods
            if lines > CLASS_LINES or methods > CLASS_METHODS:
                classes.append(f"{source.name}: {node.name}, {lines} lines, {methods} methods")
    return classes


def _internal_imports(tree: Tree, settings: Settings) -> list[str]:
    """Modules of the core that an extension imports, and that no third party is offered."""
    return [
        f"{source.name}:{imported.line}: {imported.target}"
        for source in tree.sources.values()
        if source.name.split(".")[0] in EXTENSION_PACKAGES
        for imported in _not_offered(source, settings)
    ]


def _unexplained_imports(tree: Tree, settings: Settings) -> list[str]:
    """Imports of such modules without a reason in ``structure.toml``, and reasons without any."""
    imports = [line.split(": ") for line in _internal_imports(tree, settings)]
    reasons = settings.internal_modules
    reason_of = {target: _reason_of(target, reasons) for _, target in imports}
    unexplained = [f"{place}: {target}" for place, target in imports if not reason_of[target]]
    unused = reasons.keys() - set(reason_of.values()) if imports else ()
    return [*unexplained, *sorted(unused)]


def _reason_of(target: str, reasons: Iterable[str]) -> str:
    """The longest module name among `reasons` that an imported name is in; empty if none is."""
    around = [name for name in reasons if f"{target}.".startswith(f"{name}.")]
    return max(around, key=len, default="")


def _not_offered(source: Source, settings: Settings) -> list[Import]:
    """Imports of modules of the core that no third party is offered."""
    offered = re.compile("|".join(settings.offered_to_extensions))
    return [
        imported
        for imported in source.imports
        if imported.target.split(".")[0] == "armpy"
        and not offered.fullmatch(imported.target.rpartition(".")[0] or imported.target)
    ]


def _internal_imports_in_tests(tree: Tree, settings: Settings) -> list[str]:
    """Files of tests that import modules of the core which no third party is offered."""
    return [
        f"{source.name}: {', '.join(sorted({imported.target for imported in imports}))}"
        for source in tree.tests
        if (imports := _not_offered(source, settings))
    ]


def _private_names_in_tests(tree: Tree, _: Settings) -> list[str]:
    """Accesses of tests to names with an underscore of what is not their own object or class."""
    return [
        f"{source.name}:{node.lineno}: {ast.unparse(node)}"
        for source in tree.tests
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr not in PUBLIC_IN_SPITE_OF_THEIR_NAMES
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    ]


def _long_prose(tree: Tree, _: Settings) -> list[str]:
    """Lines of prose in Markdown that are too long; code, tables and headings are left out."""
    places = []
    for path in sorted(_pages(tree.root)):
        in_code = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            text = line.strip()
            if text.startswith("```"):
                in_code = not in_code
            elif len(line) > PROSE_WIDTH and not in_code and not text.startswith(("|", "#", "<")):
                places.append(f"{path.relative_to(tree.root)}:{number}")
    return places


def _splats(tree: Tree, _: Settings) -> list[str]:
    """Arguments of calls that are unpacked from a tuple or dict written out in the call."""
    return [
        f"{source.name}:{argument.lineno}: {ast.unparse(argument)}"
        for source in tree.sources.values()
        for node in source.nodes
        if isinstance(node, ast.Call)
        for argument in (
            *(a.value for a in node.args if isinstance(a, ast.Starred)),
            *(k.value for k in node.keywords if k.arg is None),
        )
        if isinstance(argument, ast.Tuple | ast.Dict)
    ]


def _systems(tree: Tree, settings: Settings) -> list[str]:
    """Places that ask which system this is, outside of modules of a concern; idle such modules."""
    asking = {
        source.name: lines
        for source in tree.sources.values()
        if (lines := _asks_for_system(source))
    }
    outside = [
        f"{name}:{line}: {text}"
        for name, lines in asking.items()
        if name not in settings.systems
        for line, text in lines
    ]
    idle = settings.systems.keys() - asking.keys() if asking else ()
    return [*outside, *sorted(idle)]


def _asks_for_system(source: Source) -> list[tuple[int, str]]:
    """Lines that ask for the system's name, or import what one system alone has."""
    asked = [
        (node.lineno, ast.unparse(node))
        for node in source.nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node) in SYSTEM_NAMES
    ]
    imported = [
        (one.line, one.target)
        for one in source.imports
        if one.target.partition(".")[0] in MODULES_OF_ONE_SYSTEM or one.target in SYSTEM_NAMES
    ]
    return sorted([*asked, *imported])


def _pages(root: Path) -> set[Path]:
    """All Markdown pages of the project."""
    return {path for pattern in PAGES for path in root.glob(pattern)}


Rule = tuple[str, "Callable[[Tree, Settings], list[str]]"]
"""What is counted, in words, and the function that lists it by place."""

RULES: dict[str, Rule] = {
    "circles": ("circles between what lies in one folder", lambda tree, _: tree.circles()),
    "entries": ("entries directly under armpy/", _entries),
    "crowded_folders": (f"folders of more than {FILES_PER_FOLDER} files", _crowded),
    "late_imports": ("imports inside functions, outside of the gates", _late_imports),
    "doubled_class_names": ("class names that stand more than once", _doubled),
    "chains": ("classes two steps below one that is no contract", _chains),
    "compatibility": ("definitions for older callers", _compatibility),
    "protocols": ("classes of the core that are protocols", _protocols),
    "internal_imports": (
        "imports by extensions of modules of the core that no third party is offered",
        _internal_imports,
    ),
    "unexplained_imports": (
        "of these, imports without a reason, and reasons without an import",
        _unexplained_imports,
    ),
    "splats": ("arguments unpacked from a tuple or dict that the call itself writes", _splats),
    "systems": (
        "questions which system this is outside of the modules that know it, and idle such modules",
        _systems,
    ),
    "long_prose": (f"lines of prose in pages of more than {PROSE_WIDTH} characters", _long_prose),
}
"""What has a ceiling."""

REPORTS: dict[str, Rule] = {
    "large_classes": (
        f"classes of more than {CLASS_LINES} lines or {CLASS_METHODS} methods",
        _large_classes,
    ),
    "internal_imports_in_tests": (
        "files of tests that import modules of the core which no third party is offered",
        _internal_imports_in_tests,
    ),
    "private_names_in_tests": (
        "accesses of tests to names with an underscore of other objects",
        _private_names_in_tests,
    ),
}
"""What is printed for readers, who judge each case, and has no ceiling."""


@dataclass(frozen=True)
class Settings:
    """What ``structure.toml`` says.

    Ceilings and aims by rule, budgets of lines of code by package, and what a rule leaves out.
    """

    ceilings: dict[str, int]
    aims: dict[str, int]
    budgets: dict[str, int]
    gates: frozenset[str]
    one_thing_per_file: frozenset[str]
    free_of_names: tuple[str, ...]
    bases_to_inherit_from: tuple[str, ...]
    offered_to_extensions: tuple[str, ...]
    internal_modules: dict[str, str]  # why extensions import a module that is not offered
    systems: dict[str, str]  # the concern of each module that knows systems

    @classmethod
    def read(cls, path: Path = CEILINGS) -> Settings:
        """Read them; a rule without a ceiling, or a ceiling without a rule, is a `KeyError`."""
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        if set(document["ceilings"]) != set(RULES) or set(document["aims"]) != set(RULES):
            raise KeyError(f"{path.name}: ceilings and aims have to be those of {sorted(RULES)}")
        left_out = document["left_out"]
        return cls(
            document["ceilings"],
            document["aims"],
            document["budgets"],
            frozenset(left_out["gates"]),
            frozenset(left_out["one_thing_per_file"]),
            tuple(left_out["free_of_names"]),
            tuple(left_out["bases_to_inherit_from"]),
            tuple(left_out["offered_to_extensions"]),
            document["internal_modules"],
            document["systems"],
        )


def judge(counts: dict[str, int], ceilings: dict[str, int]) -> list[str]:
    """Say which counts are above their ceilings, and where to look."""
    problems = []
    for rule, count in counts.items():
        about, ceiling = RULES[rule][0], ceilings[rule]
        if count > ceiling:
            problems.append(
                f"{rule}: {about}. Expected at most {ceiling}; got {count}. "
                f"See python scripts/structure.py --show {rule}."
            )
    return problems


def lower(counts: dict[str, int], text: str) -> str:
    """Write lower counts in place of the ceilings that they have passed."""
    head, mark, rest = text.partition("[ceilings]")
    body, bracket, tail = rest.partition("[")
    for rule, count in counts.items():
        body = re.sub(
            rf"^({rule} = )(\d+)",
            lambda match, count=count: match[1] + str(min(count, int(match[2]))),  # type: ignore[misc]  # bound at once
            body,
            flags=re.MULTILINE,
        )
    return head + mark + body + bracket + tail


@dataclass
class PackageCounts:
    """Counts of one package of the core, or of one beside it."""

    files: int = 0
    lines: int = 0
    code: int = 0
    docstrings: int = 0
    classes: int = 0
    comments: int = 0

    def __str__(self) -> str:
        """The counts as a row, with the comments per 100 lines of code."""
        counts = (self.files, self.lines, self.code, self.docstrings, self.classes)
        row = " ".join(f"{count:10,d}" for count in counts)
        return f"{row} {100 * self.comments / max(self.code, 1):10.1f}"


def package_of(module: str) -> str:
    """The package of the core, or beside it, that a module is in."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "armpy" else parts[0]


def packages(tree: Tree) -> dict[str, PackageCounts]:
    """Counts of the packages of the core by their names, then of the others."""
    counts: defaultdict[str, PackageCounts] = defaultdict(PackageCounts)
    for name, source in sorted(tree.sources.items()):
        count = counts[package_of(name)]
        count.files += 1
        count.lines += source.text.count("\n")
        count.code += source.code_lines
        count.docstrings += len(source.docstring_lines)
        count.classes += sum(isinstance(node, ast.ClassDef) for node in source.nodes)
        count.comments += source.comments
    return dict(counts)


def counts_of_tests(tree: Tree) -> dict[str, tuple[int, int, int, int]]:
    """Count the files, lines, and lines of code inside and outside of test functions, by folder."""
    counts: dict[str, tuple[int, int, int, int]] = {}
    for source in tree.tests:
        parts = source.name.split("/")
        folder = "/".join(parts[: 1 if parts[0] == "tests" else 2])
        files, lines, inside, outside = counts.get(folder, (0, 0, 0, 0))
        counts[folder] = (
            files + 1,
            lines + source.text.count("\n"),
            inside + source.test_lines,
            outside + source.code_lines - source.test_lines,
        )
    return counts


def table_of_packages(tree: Tree, settings: Settings) -> str:
    """The counts and the budget of each package, a row each."""
    titles = ("files", "lines", "code", "docstrings", "classes", "comments/100", "budget")
    rows = [f"{'package':24s} {' '.join(f'{title:>10s}' for title in titles)}"]
    for name, package in packages(tree).items():
        rows.append(f"{name:24s} {package} {settings.budgets.get(name, 0):10,d}")
    return "\n".join(rows)


def table_of_tests(tree: Tree) -> str:
    """The counts of each folder of tests, a row each."""
    titles = ("files", "lines", "in tests", "outside")
    rows = [f"{'tests':24s} {' '.join(f'{title:>10s}' for title in titles)}"]
    for folder, counts in counts_of_tests(tree).items():
        rows.append(f"{folder:24s} {' '.join(f'{count:10,d}' for count in counts)}")
    return "\n".join(rows)


def lines_of_code(tree: Tree) -> dict[str, int]:
    """Lines of code of each package, as `packages` counts them."""
    counts: defaultdict[str, int] = defaultdict(int)
    for name, source in tree.sources.items():
        counts[package_of(name)] += source.code_lines
    return dict(counts)


def over_budget(counts: dict[str, int], budgets: dict[str, int]) -> list[str]:
    """Say which packages have more lines of code than their budgets; without a budget, any."""
    return [
        f"{package}: expected at most {budgets.get(package, 0)} lines of code; got {count}. If it "
        f"needs them, raise its budget in scripts/{CEILINGS.name}, in a commit that says why."
        for package, count in counts.items()
        if count > budgets.get(package, 0)
    ]


def against(root: Path, reference: str) -> str:
    """Compare the lines of code of each package with those where HEAD left a branch or commit.

    Returns
    -------
    str
        A table; if the history is not here, as in a shallow clone, a line that says so.
    """
    before = _lines_where_left(root, reference)
    if before is None:
        return f"no comparison: no common commit of {reference} and HEAD is here"
    now = lines_of_code(Tree(root))
    rows = [f"{'package':24s} {'code':>10s} {'change':>10s}  since HEAD left {reference}"]
    for package in sorted(now.keys() | before.keys()):
        count = now.get(package, 0)
        rows.append(f"{package:24s} {count:10,d} {count - before.get(package, 0):+10,d}")
    total = sum(now.values())
    rows.append(f"{'all':24s} {total:10,d} {total - sum(before.values()):+10,d}")
    return "\n".join(rows)


def _lines_where_left(root: Path, reference: str) -> dict[str, int] | None:
    """Lines of code of the packages at the merge base of a commit and HEAD; None if not here."""
    base = _git(root, "merge-base", reference, "HEAD")
    if base is None:
        return None
    archive = _git(root, "archive", "--format=zip", base.decode().strip(), "*.py")
    if archive is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            files.extractall(folder)
        return lines_of_code(Tree(Path(folder)))


def _git(root: Path, *arguments: str) -> bytes | None:
    """What a command of git prints; None if it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


def main(arguments: list[str] | None = None) -> int:
    """Count, print, check, lower or compare; 1 where a check fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--check", action="store_true", help="fail above a ceiling, or above a package's budget"
    )
    choice.add_argument(
        "--lower", action="store_true", help="lower ceilings to the counts, and check"
    )
    choice.add_argument(
        "--against", metavar="REF", help="print how lines of code changed since HEAD left REF"
    )
    counted = RULES | REPORTS
    choice.add_argument("--show", choices=sorted(counted), help="list what this rule counts")
    options = parser.parse_args(arguments)
    if options.against:
        print(against(ROOT, options.against))
        return 0
    settings, tree = Settings.read(), Tree(ROOT)
    if options.show:
        print("\n".join(counted[options.show][1](tree, settings)))
        return 0
    counts = {rule: len(count(tree, settings)) for rule, (_, count) in RULES.items()}
    if options.lower:
        text = CEILINGS.read_text(encoding="utf-8")
        CEILINGS.write_text(lower(counts, text), encoding="utf-8")
        settings = Settings.read()
    for rule, (about, _) in RULES.items():
        ceiling, aim = settings.ceilings[rule], settings.aims[rule]
        print(f"{counts[rule]:5d}  ceiling {ceiling:4d}  aim {aim:3d}  {about}")
    problems = []
    if options.check or options.lower:
        problems = judge(counts, settings.ceilings)
        problems += over_budget(lines_of_code(tree), settings.budgets)
    else:
        for about, count in REPORTS.values():
            print(f"{len(count(tree, settings)):5d}  {'reported':21s}  {about}")
        print(f"\n{table_of_packages(tree, settings)}\n\n{table_of_tests(tree)}")
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
