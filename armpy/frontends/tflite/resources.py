"""Variables and tables that operators use by a handle."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

import numpy as np

from armpy import ops
from armpy.core.dataclass import dataclass
from armpy.core.flatbuffers.reader import TableReader
from armpy.frontends.tflite.reader import enumerators
from armpy.frontends.tflite.subgraphs import SubgraphOperator, Subgraphs
from armpy.frontends.tflite.tensors import Tensors
from armpy.graph import Value
from armpy.graph.network import Network
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

OPERATORS = ("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE")
"""Operators that make and use handles, where control flow does not run them."""

HASHTABLE_OPERATORS = ("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE")
"""Operators that make, fill and use tables, where control flow does not run them."""

Key: TypeAlias = tuple[str, str]
"""Container and name of a variable."""

_TableContents: TypeAlias = tuple[Array, Array]
"""Keys and values of a table."""


@dataclass(slots=True)
class Resources:
    """The variables of a network under construction."""

    network: Network
    subgraphs: Subgraphs
    limit_bytes: int  # how much all variables together may take up
    _handles: dict[int, Key] = field(default_factory=dict)
    _initials: dict[Key, tuple[TensorInfo, Array]] = field(default_factory=dict)
    _variables: dict[Key, Value] = field(default_factory=dict)
    _current: dict[Key, Value] = field(default_factory=dict)
    _size_bytes: int = 0

    def make_handle(self, table: TableReader) -> None:
        """Take in a VAR_HANDLE."""
        _add_handle(table, self._handles)

    def read(self, table: TableReader, handle: int) -> Value:
        """Return the value of a variable at this point.

        Raises
        ------
        ParserError
            If nothing has given it elements.
        """
        key = _key_of(table, handle, self._handles)
        value = self._current.get(key) or self._variable(key)
        if value is None:
            raise table.error(f"the variable '{key[1]}' is read before it is assigned")
        return value

    def assign(self, table: TableReader, handle: int, value: Value) -> None:
        """Let a variable hold a value from now on, and when the next execution begins."""
        key = _key_of(table, handle, self._handles)
        variable = self._variable(key)
        if variable is not None:
            self.network.assign(variable, value)
        self._current[key] = value

    def _variable(self, key: Key) -> Value | None:
        """A variable as an execution finds it; None if nothing ever gives it elements before.

        What another signature initialises may be used as well, as all signatures of a model
        share its variables.
        """
        if key not in self._variables:
            if key not in self._initials:
                self._initialize_elsewhere(key)
            if key not in self._initials:
                return None
            info, data = self._initials[key]
            variable = self.network.variable(key[1], info, data, key=("resource", *key))
            self._variables[key] = variable
        return self._variables[key]

    def _initialize_elsewhere(self, wanted: Key) -> None:
        """Initialise a variable as the first subgraph does that any signature calls once."""
        for index in self.subgraphs.initial():
            handles: dict[int, Key] = {}
            for operator in self.subgraphs.operators(index):
                if operator.name == "VAR_HANDLE":
                    _add_handle(operator.table, handles)
                elif operator.name == "ASSIGN_VARIABLE":
                    handle, _ = two_inputs(operator.table)
                    if handles.get(handle) == wanted:
                        self._initialize_one(index, operator, handles)
                        return

    def initialize(self, index: int) -> None:
        """Take in the variables that a subgraph assigns constants to, when it is called once.

        Raises
        ------
        ParserError
            If the subgraph does something else, or the variables are too large.
        """
        handles: dict[int, Key] = {}
        for operator in self.subgraphs.operators(index):
            if operator.name == "VAR_HANDLE":
                _add_handle(operator.table, handles)
            elif operator.name == "ASSIGN_VARIABLE":
                self._initialize_one(index, operator, handles)
            elif operator.name not in HASHTABLE_OPERATORS:  # which `Hashtables` takes in
                raise operator.table.error(
                    "an initialisation subgraph can only assign constants to variables and tables",
                    expected="VAR_HANDLE, ASSIGN_VARIABLE, HASHTABLE or HASHTABLE_IMPORT",
                    actual=operator.name,
                )

    def _initialize_one(
        self, index: int, operator: SubgraphOperator, handles: dict[int, Key]
    ) -> None:
        """Take in a variable with its initial elements."""
        table = operator.table
        handle, source = two_inputs(table)
        key = _key_of(table, handle, handles)
        tensor = self.subgraphs.tensors(index)[source]
        data = self.subgraphs.tensors(index).constant(tensor)
        if data is None:
            raise table.error(
                "a variable is not initialised with a constant", actual=tensor.table.where
            )
        self._size_bytes += data.nbytes
        if self._size_bytes > self.limit_bytes:
            raise table.error(
                "the variables are larger than the memory limit",
                expected=f"at most {self.limit_bytes} bytes",
                actual=str(self._size_bytes),
            )
        info = TensorInfo(tensor.known_shape, tensor.data_type, tensor.quantization)
        if key in self._initials:
            raise table.error(f"the variable '{key[1]}' is initialised twice")
        self._initials[key] = info, data


def two_inputs(table: TableReader) -> tuple[int, int]:
    """The inputs of an ASSIGN_VARIABLE: handle and value."""
    inputs: list[int] = table.numbers("Inputs")
    if len(inputs) != 2:
        raise table.error("the number of inputs is wrong", expected="2", actual=str(len(inputs)))
    return inputs[0], inputs[1]


def _add_handle(table: TableReader, handles: dict[int, Key]) -> None:
    """Remember which variable a VAR_HANDLE's output stands for."""
    outputs: list[int] = table.numbers("Outputs")
    if len(outputs) != 1:
        raise table.error("the number of outputs is wrong", expected="1", actual=str(len(outputs)))
    options = table.union("BuiltinOptions", "VarHandleOptions")
    handles[outputs[0]] = options.text("Container"), options.text("SharedName")


def _key_of(table: TableReader, handle: int, handles: dict[int, Key]) -> Key:
    """The variable that a handle stands for."""
    if handle not in handles:
        raise table.error(f"tensor {handle} is not a handle of a variable")
    return handles[handle]


@dataclass(slots=True)
class Hashtables:
    """The tables of a network under construction."""

    network: Network
    subgraphs: Subgraphs
    limit_bytes: int  # limit of what all tables together may take up
    # Numbers of tables, by the tensors that stand for them.
    handles: dict[int, int] = field(default_factory=dict)
    _contents: dict[int, _TableContents] = field(default_factory=dict)
    _constants: dict[int, tuple[Value, Value]] = field(default_factory=dict)
    _size_bytes: int = 0

    def make_handle(self, table: TableReader, handles: dict[int, int]) -> None:
        """Take in a HASHTABLE: its output stands for the table with a number."""
        (output,) = _numbers(table, "Outputs", 1)
        options = table.union("BuiltinOptions", "HashtableOptions")
        names = enumerators("TensorType")
        types = [names.get(options.integer(f), "") for f in ("KeyDtype", "ValueDtype")]
        if sorted(types) != ["INT64", "STRING"]:
            raise table.error(
                "the types of the table are not supported",
                expected="STRING to INT64 or INT64 to STRING",
                actual=" to ".join(types),
            )
        handles[output] = options.integer("TableId")

    def fill(self, table: TableReader, tensors: Tensors, handles: dict[int, int]) -> None:
        """Take in a HASHTABLE_IMPORT of constants; a table that has been filled stays as it is."""
        handle, *sources = _numbers(table, "Inputs", 3)
        number = _table_of(table, handle, handles)
        if number in self._contents:
            return
        arrays = [tensors.constant(tensors[source]) for source in sources]
        if arrays[0] is None or arrays[1] is None:
            raise table.error("a table is filled with tensors that are not constants")
        keys, values = (array.reshape(-1) for array in arrays if array is not None)
        if keys.size != values.size:
            raise table.error(
                "a table has not one value for each key",
                expected=f"{keys.size} values",
                actual=str(values.size),
            )
        self._size_bytes += keys.nbytes + values.nbytes
        if self._size_bytes > self.limit_bytes:
            raise table.error(
                "the tables are larger than the memory limit",
                expected=f"at most {self.limit_bytes} bytes",
                actual=str(self._size_bytes),
            )
        self._contents[number] = _without_repeats(keys, values)

    def find(
        self, table: TableReader, handle: int, keys: Value, default: Value, name: str
    ) -> Value:
        """The values of keys, by a HASHTABLE_FIND."""
        operands = (keys, *self._constant(table, handle), default)
        return self.network.add(ops.TableLookup(), *operands, name=name)

    def size(self, table: TableReader, handle: int) -> Value:
        """The number of a table's keys, by a HASHTABLE_SIZE."""
        keys, _ = self._filled(table, handle)
        return self.network.constant(np.array([len(keys)], np.int64))

    def _constant(self, table: TableReader, handle: int) -> tuple[Value, Value]:
        """Keys and values as constants, made once."""
        number = _table_of(table, handle, self.handles)
        if number not in self._constants:
            keys, values = self._filled(table, handle)
            constant = self.network.constant
            self._constants[number] = constant(keys), constant(values)
        return self._constants[number]

    def _filled(self, table: TableReader, handle: int) -> _TableContents:
        """Return the contents of a table.

        What another signature fills may be used as well, as all signatures of a model share
        its tables.
        """
        number = _table_of(table, handle, self.handles)
        if number not in self._contents:
            for index in self.subgraphs.initial():
                self.initialize(index)
        if number not in self._contents:
            raise table.error(f"table {number} is used before it is filled")
        return self._contents[number]

    def initialize(self, index: int) -> None:
        """Take in the tables that a subgraph fills when it is called once."""
        handles: dict[int, int] = {}
        for operator in self.subgraphs.operators(index):
            if operator.name == "HASHTABLE":
                self.make_handle(operator.table, handles)
            elif operator.name == "HASHTABLE_IMPORT":
                self.fill(operator.table, self.subgraphs.tensors(index), handles)


def _without_repeats(keys: Array, values: Array) -> _TableContents:
    """Keys and values without keys that came before: the first of equal keys counts."""
    firsts: dict[object, int] = {}
    for place, key in enumerate(keys.tolist()):
        firsts.setdefault(key, place)
    places = [*firsts.values()]
    return keys[places], values[places]


def _numbers(table: TableReader, where: str, count: int) -> list[int]:
    """The tensors that an operator reads or writes.

    Raises
    ------
    ParserError
        If there are more or fewer of them.
    """
    indexes: list[int] = table.numbers(where)
    if len(indexes) != count:
        raise table.error(
            f"the number of {where.lower()} is wrong", expected=str(count), actual=str(len(indexes))
        )
    return indexes


def _table_of(table: TableReader, handle: int, handles: dict[int, int]) -> int:
    """The number of the table that a handle stands for."""
    if handle not in handles:
        raise table.error(f"tensor {handle} is not a handle of a table")
    return handles[handle]
