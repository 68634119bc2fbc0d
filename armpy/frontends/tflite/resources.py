"""Variables that operators read and assign by a handle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from armpy.frontends.tflite.reader import TableReader
from armpy.frontends.tflite.subgraphs import SubgraphOperator, Subgraphs
from armpy.graph import Value
from armpy.graph.network import Network
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

OPERATORS = ("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE")
"""What handles are made and used by, where control flow does not run it."""

Key: TypeAlias = tuple[str, str]
"""Container and name of a variable."""


@dataclass(slots=True)
class Resources:
    """The variables of a network under construction.

    Parameters
    ----------
    network : Network
    subgraphs : Subgraphs
    limit_bytes : int
        How much all variables together may take up.
    """

    network: Network
    subgraphs: Subgraphs
    limit_bytes: int
    _handles: dict[int, Key] = field(default_factory=dict)
    _initials: dict[Key, tuple[TensorInfo, Array]] = field(default_factory=dict)
    _variables: dict[Key, Value] = field(default_factory=dict)
    _current: dict[Key, Value] = field(default_factory=dict)
    _size_bytes: int = 0

    def make_handle(self, table: TableReader) -> None:
        """Take in a VAR_HANDLE."""
        _add_handle(table, self._handles)

    def read(self, table: TableReader, handle: int) -> Value:
        """What a variable holds at this point.

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

        Notes
        -----
        What another signature initialises may be used as well, as all signatures of a model
        share its variables.
        """
        if key not in self._variables:
            if key not in self._initials:
                self._initialize_elsewhere(key)
            if key not in self._initials:
                return None
            info, data = self._initials[key]
            made = self.network.variable(key[1], info, data, key=("resource", *key))
            self._variables[key] = made
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
            else:
                raise operator.table.error(
                    "an initialisation subgraph can only assign constants to variables",
                    expected="VAR_HANDLE or ASSIGN_VARIABLE",
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
        raise table.error(f"tensor {handle} is no handle of a variable")
    return handles[handle]
