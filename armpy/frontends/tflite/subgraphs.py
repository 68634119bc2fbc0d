"""The subgraphs of a model: which run which, and what operators they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from armpy import plugins  # its install lines: for errors alone
from armpy.core.dataclass import dataclass
from armpy.core.flatbuffers.reader import TableReader, Tables
from armpy.errors import UnsupportedOperatorError
from armpy.frontends.tflite.reader import enumerators
from armpy.frontends.tflite.tensors import Tensors
from armpy.plugins.extension_tables import CUSTOM_OPERATORS

MAX_NESTING = 32
"""Maximum depth of subgraphs that run each other; far more than any model has."""

_LARGEST_REBUILD = 16
_FREE_OPERATORS = 1000

_REFERENCES = {
    "IF": ("BuiltinOptions", "IfOptions", ("ThenSubgraphIndex", "ElseSubgraphIndex")),
    "WHILE": ("BuiltinOptions", "WhileOptions", ("CondSubgraphIndex", "BodySubgraphIndex")),
    "CALL_ONCE": ("BuiltinOptions", "CallOnceOptions", ("InitSubgraphIndex",)),
    "STABLEHLO_COMPOSITE": (
        "BuiltinOptions2",
        "StableHLOCompositeOptions",
        ("DecompositionSubgraphIndex",),
    ),
}
"""Options of operators that run subgraphs: field, table, and fields with the subgraphs' numbers."""


@dataclass(frozen=True, slots=True)
class SubgraphOperator:
    """One operator of a subgraph."""

    number: int  # its place in the subgraph
    name: str  # in the schema; a custom operator's with its custom code
    table: TableReader

    @property
    def subgraphs(self) -> tuple[int, ...]:
        """Indexes of the subgraphs that it runs."""
        union, options, fields = _REFERENCES.get(self.name, ("", "", ()))
        if not fields:
            return ()
        table = self.table.union(union, options)
        return tuple(table.integer(field) for field in fields)


class Subgraphs:
    """The subgraphs of a model, each read once."""

    def __init__(
        self,
        model: TableReader,
        memory_limit_bytes: int,  # how much one tensor may take up
    ) -> None:
        self._tables = model.tables("Subgraphs", "subgraph")
        self._buffers = model.tables("Buffers", "buffer")
        self._codes = model.tables("OperatorCodes", "operator code")
        self._memory_limit_bytes = memory_limit_bytes
        self._names: dict[int, str] = {}
        self._read: dict[int, TableReader] = {}
        self._operators: dict[int, tuple[SubgraphOperator, ...]] = {}
        self._tensors: dict[int, Tensors] = {}
        self._built_operators = 0

    def __getitem__(self, index: int) -> TableReader:
        if index not in self._read:
            self._read[index] = self._tables[index]
        return self._read[index]

    def tensors(self, index: int) -> Tensors:
        """The tensors of a subgraph."""
        if index not in self._tensors:
            tables = self[index].tables("Tensors", "tensor")
            self._tensors[index] = Tensors(tables, self._buffers, self._memory_limit_bytes)
        return self._tensors[index]

    def operators(self, index: int) -> tuple[SubgraphOperator, ...]:
        """The operators of a subgraph, in the order in which they run."""
        if index not in self._operators:
            tables = self[index].tables("Operators", "operator")
            self._operators[index] = tuple(self._read_operators(tables))
        return self._operators[index]

    def _read_operators(self, tables: Tables) -> Iterator[SubgraphOperator]:
        """Every operator with its name."""
        for number, table in enumerate(tables):
            code = table.integer("OpcodeIndex")
            if code not in self._names:
                self._names[code] = _operator_name(self._codes, code)
            table.where = f"operator {number} {self._names[code]}"
            yield SubgraphOperator(number, self._names[code], table)

    def check(
        self,
        main: int,
        supported: Collection[str],
        custom: Collection[str],
        # Operators that are supported where control flow does not run them.
        outside: Collection[str],
        stands_in: bool = False,  # whether others become StandIn layers, if they run no subgraphs
    ) -> None:
        """Check the operators of a subgraph and of all that it runs.

        Raises
        ------
        UnsupportedOperatorError
            If there are others; it names all of them.
        ParserError
            If subgraphs run themselves or lie too deep in each other.
        """
        inner = self._order(main)
        initial = {i for op in self.operators(main) if op.name == "CALL_ONCE" for i in op.subgraphs}
        unsupported: Counter[str] = Counter()
        for index in inner:
            allows_all = index == main or index in initial
            for operator in self.operators(index):
                if operator.name in custom or operator.name in supported:
                    continue
                if allows_all and operator.name in outside:
                    continue
                if stands_in and operator.name not in outside and not operator.subgraphs:
                    continue
                place = "" if allows_all or operator.name not in outside else " in control flow"
                unsupported[operator.name + place] += 1
        _refuse_unsupported(unsupported)

    def _order(self, main: int) -> list[int]:
        """A subgraph and those that it runs, each once, outer ones first."""
        done: dict[int, int] = {}
        path = [(main, self._runs(main))]
        while path:
            index, waiting = path[-1]
            following = next(waiting, None)
            if following is None:
                done[index] = len(done)
                path.pop()
            elif any(following == other for other, _ in path):
                raise self[following].error("the subgraph runs itself")
            elif following not in done:
                if len(path) > MAX_NESTING:
                    raise self[following].error(
                        "subgraphs lie too deep in each other",
                        expected=f"at most {MAX_NESTING} levels",
                    )
                path.append((following, self._runs(following)))
        return list(reversed(done))

    def _runs(self, index: int) -> Iterator[int]:
        """Indexes of the subgraphs that a subgraph's operators run."""
        return (i for operator in self.operators(index) for i in operator.subgraphs)

    def initial(self) -> Iterator[int]:
        """Indexes of the subgraphs that others call once, in the file's order."""
        for index in range(len(self._tables)):
            for operator in self.operators(index):
                if operator.name == "CALL_ONCE":
                    yield from operator.subgraphs

    def charge(self, index: int) -> None:
        """Count that a subgraph is built; it may have to be for several sets of shapes.

        Raises
        ------
        ParserError
            If that happens too often.
        """
        self._built_operators += 1 + len(self.operators(index))
        own = sum(map(len, self._operators.values()))
        if self._built_operators > _FREE_OPERATORS + _LARGEST_REBUILD * own:
            raise self[index].error("the subgraphs would have to be built too often")


def _operator_name(codes: Tables, index: int) -> str:
    """Name of an operator in the schema; a custom operator's with its custom code."""
    code = codes[index]
    # Files older than schema version 3a have only the first field, which ends at 127.
    number = max(code.integer("DeprecatedBuiltinCode"), code.integer("BuiltinCode"))
    name = enumerators("BuiltinOperator").get(number, f"operator code {number}")
    return custom_name(code.text("CustomCode")) if name == "CUSTOM" else name


def custom_name(code: str) -> str:
    """Return the name of a custom operator."""
    return f"custom '{code}'"


def _refuse_unsupported(unsupported: Counter[str]) -> None:
    """Raise one error that names every operator that armpy does not have."""
    if not unsupported:
        return
    owners = {custom_name(code): extension for code, extension in CUSTOM_OPERATORS.items()}
    commands = {plugins.install_line(owners[name]) for name in unsupported if name in owners}
    error = UnsupportedOperatorError(
        "the model uses operators that armpy does not have",
        expected="operators that docs/reference/tflite_operators.md lists",
        actual=", ".join(f"{name} x{count}" for name, count in unsupported.items()),
        fix=" and ".join(f"Run: {command}" for command in sorted(commands))
        or "Convert the model with other operators, or install a plugin that has them",
    )
    error.operators = dict(unsupported)
    raise error
