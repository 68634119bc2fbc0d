"""Models as applications build them: operand by operand, operation by operation."""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType

from armpy.core.system_trace import begin_system_trace
from armpy.core.vlog import begin_vlog, is_on, vlog
from armpy_nnapi.codes import (
    MAX_OPERANDS,
    OperandCode,
    OperationCode,
    is_extension,
    operation_name,
)
from armpy_nnapi.description.model_description import (
    ChannelQuant,
    ExtensionTypeInformation,
    ModelDescription,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.description.operand_type import OperandType, validate_operand_type
from armpy_nnapi.devices import DeviceManager, default_manager
from armpy_nnapi.extensions.extensions import ExtensionLookup, TypeManager
from armpy_nnapi.memory import Memory
from armpy_nnapi.model.dump import draw
from armpy_nnapi.model.finish_model import complete
from armpy_nnapi.model.operand_list import OperandList
from armpy_nnapi.model.references import References
from armpy_nnapi.results import (
    as_integer,
    bad_data,
    bad_state,
    check_kind,
    require_data,
    unexpected_null,
)
from armpy_nnapi.validation.described import FinishedModel, IModel
from armpy_nnapi.validation.validate_model import check_channel_quant, validate_operation

_log = logging.getLogger("armpy_nnapi")


class Model(IModel):
    """A model, under construction until it is finished.

    Parameters
    ----------
    manager : DeviceManager, optional
        Provides the extensions, and by default the devices; the default manager if left out.

    Raises
    ------
    NnapiError
        From any method that changes the model: BAD_STATE if it is finished, or its `finish`
        failed.

    Notes
    -----
    Used as a context manager it is finished at the end of the block, unless that raises.
    """

    def __init__(self, manager: DeviceManager | None = None) -> None:
        begin_vlog()
        begin_system_trace()
        self._manager = manager
        self._list = OperandList()
        self._operations: list[OperationNode] = []
        self._inputs: tuple[int, ...] = ()
        self._outputs: tuple[int, ...] = ()
        self._references = References()
        self._is_relaxed = False
        self._is_invalid = False
        self._finished: FinishedModel | None = None

    @classmethod
    def from_description(
        cls, description: ModelDescription, manager: DeviceManager | None = None
    ) -> Model:
        """A finished model.

        Parameters
        ----------
        description : ModelDescription
            Operations of the main graph in any order.

        Raises
        ------
        NnapiError
            BAD_DATA if it is not valid.
        """
        check_kind(description, ModelDescription, "Model.from_description")
        model = cls(manager)
        model._finished = complete(description)
        return model

    def add_operand(self, operand_type: OperandType) -> int:
        """Add an operand.

        Returns
        -------
        int
            Index of the operand.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a type; BAD_STATE; BAD_DATA if the type is not valid, or
            of an extension that cannot be used.
        """
        where = "Model.add_operand"
        if operand_type is None:
            raise unexpected_null("the operand type", where=where, expected="an OperandType")
        self._check_open(where)
        check_kind(operand_type, OperandType, where)
        information: ExtensionTypeInformation | None = None
        if is_extension(operand_type.type):
            information = self._type_manager.operand_type_information(operand_type.type, where)
        validate_operand_type(operand_type, information, where=where)
        if operand_type.type in (OperandCode.OEM_SCALAR, OperandCode.TENSOR_OEM_BYTE):
            _log.warning("%s: OEM types are deprecated; use an extension", where)
        operand = replace(operand_type.operand, extension_type=information)
        return self._list.add(operand, where)

    def set_operand_value(self, index: int, value: object) -> None:
        """Make an operand a constant.

        Parameters
        ----------
        value : ndarray, bytes-like, number or None
            Elements; None for an optional operand that is left out. More than 128 bytes are
            copied when the model is finished and must not change until then.

        Raises
        ------
        NnapiError
            BAD_STATE; BAD_DATA if there is no such operand, its dimensions are not fully
            known, or the value does not have its size.
        """
        where = f"Model.set_operand_value({index})"
        self._check_open(where)
        self._list.set_value(index, value, where)

    def set_operand_value_from_memory(
        self, index: int, memory: Memory, offset: int, length: int
    ) -> None:
        """Make an operand a constant whose elements are in shared memory.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without memory; BAD_STATE; BAD_DATA as for `set_operand_value`, or
            if the region is not in the memory.
        """
        where = f"Model.set_operand_value_from_memory({index})"
        if memory is None:
            raise unexpected_null("the memory", where=where, expected="a Memory")
        check_kind(memory, Memory, where)
        self._check_open(where)
        # The operand first, as NNAPI does, then whether the region is in the memory.
        self._list.check_region(index, length, where)
        self._list.set_region(index, memory.region(offset, length, where))

    def set_operand_value_from_model(self, index: int, value: Model) -> None:
        """Let an operand of type MODEL stand for a model.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a model; BAD_STATE, also if the other model is not finished
            or invalid; BAD_DATA if there is no such operand.

        Notes
        -----
        Prefixes of the other model's vendor extensions, which may be another manager's or a
        description's own, become those that the extensions have here.
        """
        where = f"Model.set_operand_value_from_model({index})"
        if value is None:
            raise unexpected_null("the model", where=where, expected="a finished Model")
        check_kind(value, Model, where)
        value.check_finished(where)
        self._check_open(where)
        self._list.get(index, where)
        # The manager is asked only for models with extensions: making it looks for backends.
        prefix_of = self._type_manager.prefix_of if value.description.extensions else None
        self._list.set_model(index, self._references.add(value.description, prefix_of))

    def set_operand_symm_per_channel_quant_params(
        self, index: int, scales: Iterable[float], channel_dim: int
    ) -> None:
        """Set the scales of a TENSOR_QUANT8_SYMM_PER_CHANNEL operand.

        Parameters
        ----------
        scales : iterable of float
            One per index along the channel dimension, above 0.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without scales; BAD_STATE; BAD_DATA if they do not fit the operand.

        Notes
        -----
        The C structure ``ANeuralNetworksSymmPerChannelQuantParams`` has the dimension first.
        """
        where = f"Model.set_operand_symm_per_channel_quant_params({index})"
        if scales is None:
            raise unexpected_null("the list of scales", where=where)
        self._check_open(where)
        operand = self._list.get(index, where)
        quant = ChannelQuant(_scales(scales, where), channel_dim)
        operand = replace(operand, channel_quant=quant)
        check_channel_quant(operand, where)
        # Only checked values: a call that fails changes nothing.
        self._list.operands[index] = operand

    def set_operand_extension_data(self, index: int, data: bytes | None) -> None:
        """Attach data to an operand of an extension's type; None takes it away.

        Raises
        ------
        NnapiError
            BAD_STATE; BAD_DATA if there is no such operand, it is of another kind of type, or
            there are no bytes.
        """
        where = f"Model.set_operand_extension_data({index})"
        self._check_open(where)
        operand = self._list.get(index, where)
        # A copy, as NNAPI takes one: the caller may reuse the buffer.
        held = None if data is None else _bytes(data, where)
        require_data(held != b"", "the data has no bytes", where=where, fix="Pass None to clear it")
        require_data(
            is_extension(operand.type),
            "the operand is not of an extension's type",
            where=where,
            actual=operand.type_name,
        )
        self._list.operands[index] = replace(operand, extension_data=held)

    def add_operation(self, code: int, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Add an operation.

        Parameters
        ----------
        code : int
            An `OperationCode`, or the code of an extension's operation.
        inputs, outputs : sequence of int
            Indexes of operands.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a list; BAD_STATE; BAD_DATA if there is no such operation
            or it does not take these operands.
        """
        where = "Model.add_operation"
        if inputs is None or outputs is None:
            raise unexpected_null("a list of operands", where=where)
        self._check_open(where)
        code = as_integer(code, "operation's code", where)
        if is_extension(code):
            self._type_manager.check_operation_type(code, where)
        elif code == OperationCode.OEM_OPERATION:
            _log.warning("%s: OEM_OPERATION is deprecated; use an extension", where)
        # Of a tuple: up to Python 3.11 an enumeration raises for a number that it has not.
        elif code not in tuple(OperationCode):
            raise bad_data(
                "unknown operation",
                where=where,
                expected="an OperationCode, or the code of an extension's operation",
                actual=str(code),
                fix="Pass a member of OperationCode, such as OperationCode.ADD",
            )
        node = OperationNode(int(code), _indexes(inputs, where), _indexes(outputs, where))
        # At once, so that the error points to the call that is wrong and not to finish.
        validate_operation(node, self._list.operands, self._references.graphs)
        require_data(
            len(self._operations) < MAX_OPERANDS,
            "there are too many operations",
            where=f"{where} / {operation_name(code)}",
        )
        self._operations.append(node)

    def identify_inputs_and_outputs(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Say which operands an execution gives and which it takes.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a list, even an empty one; BAD_STATE; BAD_DATA if an operand
            does not exist, is a constant, or is listed twice.
        """
        where = "Model.identify_inputs_and_outputs"
        if inputs is None or outputs is None:
            raise unexpected_null("a list of operands", where=where, expected="a list or tuple")
        self._check_open(where)
        ins, outs = _indexes(inputs, where), _indexes(outputs, where)
        self._list.mark(ins, outs, where)
        self._inputs, self._outputs = ins, outs

    def relax_computation_float32_to_float16(self, allow: bool = True) -> None:
        """Say whether float32 may be computed with range and precision of float16.

        Raises
        ------
        NnapiError
            BAD_STATE.
        """
        self._check_open("Model.relax_computation_float32_to_float16")
        self._is_relaxed = bool(allow)

    def finish(self) -> None:
        """Check the model as a whole and make it final.

        Raises
        ------
        NnapiError
            BAD_STATE if that was tried before; BAD_DATA if the model is not valid, which it
            then stays.
        """
        self._check_open("Model.finish")
        # The application may change or free its buffers as soon as this returns.
        self._list.copy_large_values()
        main = Subgraph(
            tuple(self._list.operands), tuple(self._operations), self._inputs, self._outputs
        )
        referenced = self._references.graphs
        codes = self._references.extension_codes(main)
        # Only for extensions, as asking the manager looks for backends.
        names = self._type_manager.names_of(codes) if codes else {}
        # Until it is known to be valid: NNAPI lets finish be tried once, whatever its result.
        self._is_invalid = True
        self._finished = complete(ModelDescription(main, referenced, self._is_relaxed, names))
        self._is_invalid = False
        if is_on.model:
            vlog("model", "%s", draw(self._finished.description))

    @property
    def is_finished(self) -> bool:
        """Return whether it is final and valid."""
        return self._finished is not None

    @property
    def description(self) -> ModelDescription:
        """The finished model as plain data.

        Raises
        ------
        NnapiError
            BAD_STATE before.
        """
        return self.check_finished("Model.description").description

    @property
    def operation_order(self) -> tuple[int, ...]:
        """Return for each operation of the description its number in the order of adding."""
        return self.check_finished("Model.operation_order").order

    def check_finished(self, where: str) -> FinishedModel:
        """The finished model.

        Raises
        ------
        NnapiError
            BAD_STATE if the model is not finished, or invalid.
        """
        if self._finished is None:
            problem = "is invalid" if self._is_invalid else "is not finished"
            raise bad_state(f"the model {problem}", where=where, fix="Call Model.finish first")
        return self._finished

    def get_extension_operand_type(self, extension_name: str, operand_type: int) -> int:
        """The code of an extension's operand type; see `TypeManager.get_operand_type`."""
        return self._type_manager.get_operand_type(extension_name, operand_type)

    def get_extension_operation_type(self, extension_name: str, operation_type: int) -> int:
        """The code of an extension's operation; see `TypeManager.get_operation_type`."""
        return self._type_manager.get_operation_type(extension_name, operation_type)

    @property
    def manager(self) -> DeviceManager:
        """The manager whose extensions it can use, and whose devices run it by default."""
        # Not before it is needed: to make the default one looks for backends.
        return self._manager or default_manager()

    def check_manager(self, manager: object, where: str) -> None:
        """Check that a manager is the one that the model was made for, if it was made for one.

        Raises
        ------
        NnapiError
            BAD_DATA if it is another one.
        """
        if self._manager is not None and self._manager is not manager:
            raise bad_data(
                "the devices are of another manager than the model",
                where=where,
                expected="devices of model.manager",
                fix="Take them from there, or say no manager when the model is made",
            )

    @property
    def extension_lookup(self) -> ExtensionLookup:
        """The function that looks up its vendor extensions."""
        return self._type_manager.lookup()

    @property
    def _type_manager(self) -> TypeManager:
        """The manager's codes of extensions."""
        return self.manager.extensions

    def _check_open(self, where: str) -> None:
        """Check that the model can still be changed."""
        if self._is_invalid:
            raise bad_state("the model is invalid", where=where, fix="Build another one")
        if self._finished is not None:
            raise bad_state("the model is finished", where=where)

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # After an error in the block the model stays open: errors of its own would hide that one.
        if kind is None and self._finished is None and not self._is_invalid:
            self.finish()

    def __repr__(self) -> str:
        state = "open"
        if self.is_finished:
            state = "finished"
        elif self._is_invalid:
            state = "invalid"
        operands, operations = self._list.operands, self._operations
        return f"Model({len(operands)} operands, {len(operations)} operations, {state})"


def _scales(scales: Iterable[float], where: str) -> tuple[float, ...]:
    """Scales as plain numbers."""
    try:
        return tuple(float(scale) for scale in scales)
    except (TypeError, ValueError) as error:
        raise bad_data(
            "these are not scales", where=where, expected="a list of numbers", actual=str(error)
        ) from error


def _bytes(data: object, where: str) -> bytes:
    """A copy of an object's bytes."""
    try:
        # By a view: of a number, `bytes` makes that many zeros.
        return bytes(memoryview(data))  # type: ignore[arg-type]  # a non-buffer raises
    except TypeError as error:
        raise bad_data(
            "the data are not bytes", where=where, expected="bytes", actual=type(data).__name__
        ) from error


def _indexes(indexes: Iterable[int], where: str) -> tuple[int, ...]:
    """A list of operands as plain integers."""
    try:
        return tuple(operator.index(index) for index in indexes)
    except TypeError as error:
        raise bad_data(
            "a list of operands has something else in it",
            where=where,
            expected="integers",
            actual=str(error),
        ) from error
