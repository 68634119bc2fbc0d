"""Memory descriptors: the uses of a device's memory, given before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from weakref import ref

from armpy.errors import ArmpyError
from armpy.model.device_memory import (
    TensorRole,
    allocate_device_memory,
    single_user,
    works_in_host_memory,
)
from armpy_nnapi.codes import FeatureLevel
from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.description.model_description import Operand
from armpy_nnapi.description.request import combine_dimensions
from armpy_nnapi.errors import NnapiError
from armpy_nnapi.memory import IMemoryDesc
from armpy_nnapi.memory_domains.described_memory import DescribedMemory, Role, same_metadata
from armpy_nnapi.results import (
    as_integer,
    bad_data,
    bad_state,
    check_index,
    check_kind,
    op_failed,
    require_data,
    unexpected_null,
)

_LEVEL = FeatureLevel.LEVEL_4
"""Least feature level of devices that can be asked for memory."""


class MemoryDesc(IMemoryDesc[DescribedMemory]):
    """A description of memory by the inputs and outputs that will use it.

    Notes
    -----
    `Memory.create_from_desc` makes memory of a finished one, as often as asked.
    """

    def __init__(self) -> None:
        self._roles: dict[Role, float] = {}
        self._compilations: list[Compilation] = []  # as roles keep none
        self._operand: Operand | None = None
        self._dimensions: tuple[int, ...] = ()
        self._is_finished = False

    def add_input_role(self, compilation: Compilation, index: int, frequency: float) -> None:
        """Say that the memory is to be an input.

        Parameters
        ----------
        compilation : Compilation
            Finished.
        index : int
            Position among its model's inputs.
        frequency : float
            Likelihood of this use, above 0 and at most 1.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a compilation; BAD_STATE after `finish`; BAD_DATA if the role
            is there already, the compilation is not finished, there is no such input, type,
            quantisation or dimensions are not those of the other roles, or the frequency cannot be.
        """
        self._add(compilation, index, frequency, is_output=False)

    def add_output_role(self, compilation: Compilation, index: int, frequency: float) -> None:
        """Say that the memory is to be an output; parameters and errors as for inputs."""
        self._add(compilation, index, frequency, is_output=True)

    def _add(
        self, compilation: Compilation, index: int, frequency: float, *, is_output: bool
    ) -> None:
        kind = "output" if is_output else "input"
        where = f"MemoryDesc.add_{kind}_role({index})"
        if compilation is None:
            raise unexpected_null("the compilation", where=where)
        check_kind(compilation, Compilation, where)
        self._check_open(where)
        index = as_integer(index, f"{kind}'s index", where)
        role = Role(ref(compilation), is_output, index)
        require_data(role not in self._roles, "the role is there already", where=where)
        require_data(compilation.is_finished, "the compilation is not finished", where=where)
        slots = compilation.signature.outputs if is_output else compilation.signature.inputs
        slot = slots[check_index(index, len(slots), kind, where)]
        operand = slot.operand
        require_data(
            self._operand is None or same_metadata(operand, self._operand),
            "the type is not that of the other roles",
            where=where,
            expected=_describe(self._operand or operand),
            actual=_describe(operand),
        )
        # Those that follow from the inputs' are known here, where the model does not say them.
        dimensions = self._combined(operand, slot.dimensions, where)
        require_data(
            isinstance(frequency, Real) and 0 < frequency <= 1,
            "the frequency cannot be",
            where=where,
            expected="more than 0, at most 1",
            actual=repr(frequency),
        )
        self._roles[role] = float(frequency)
        self._compilations.append(compilation)
        self._operand, self._dimensions = operand, dimensions

    def set_dimensions(self, dimensions: Sequence[int]) -> None:
        """Set dimensions beyond those that the models declare; 0 where unknown.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL if they are None; BAD_STATE after `finish`; BAD_DATA if they contradict
            what is known.
        """
        where = "MemoryDesc.set_dimensions"
        if dimensions is None:
            raise unexpected_null("the list of dimensions", where=where)
        self._check_open(where)
        sizes = tuple(int(dim) for dim in dimensions)
        self._dimensions = self._combined(self._operand, sizes, where)

    def _combined(
        self, operand: Operand | None, dimensions: tuple[int, ...], where: str
    ) -> tuple[int, ...]:
        """The known dimensions combined with these."""
        known = self._dimensions
        combined = combine_dimensions(known, dimensions)
        if operand is not None and not operand.is_tensor and combined:
            combined = None
        if combined is None:
            raise bad_data(
                "the dimensions are not those that are known",
                where=where,
                expected=str(known),
                actual=str(dimensions),
            )
        return combined

    def finish(self) -> None:
        """End the description.

        Raises
        ------
        NnapiError
            BAD_STATE if that was done before; BAD_DATA without roles.
        """
        where = "MemoryDesc.finish"
        self._check_open(where)
        require_data(bool(self._roles), "no role was added", where=where)
        self._is_finished = True

    def _check_open(self, where: str) -> None:
        """Check that it can still be changed."""
        if self._is_finished:
            raise bad_state("the description is finished", where=where)

    def make(self) -> DescribedMemory:
        """The memory; see `Memory.create_from_desc`."""
        where = "Memory.create_from_desc"
        if not self._is_finished or self._operand is None:
            raise bad_state("the description is not finished", where=where)
        # Made anew at each call: one description makes any number of memories.
        described = replace(self._operand, dimensions=self._dimensions, data=None)
        try:
            roles = self._tensor_roles()
        except ArmpyError:  # a network that is not loaded, or not any more, has no device
            roles = []
        buffer = None
        if roles and _knows_memory(roles):
            buffer = allocate_device_memory(described.info, roles)
        if buffer is not None:
            return DescribedMemory(described, self._roles, buffer)
        if not described.size_bytes:
            raise self._refused("the size is not known, and no device makes memory without", where)
        # NNAPI's CPU device makes memory itself; so would each backend that works in the host's.
        is_chosen = any(compilation.devices is not None for compilation in self._compilations)
        if is_chosen and not works_in_host_memory(roles):
            raise self._refused("no chosen device makes memory for all roles", where)
        return DescribedMemory(described, self._roles)

    def _refused(self, failed: str, where: str) -> NnapiError:
        """The error where no memory can be made."""
        fix = "Use memory of the application: Memory.shared"
        return op_failed(failed, where=where, actual=str(self._dimensions), fix=fix)

    def _tensor_roles(self) -> list[TensorRole]:
        roles_found = []
        pairs = zip(self._roles.items(), self._compilations, strict=True)
        for (role, frequency), compilation in pairs:
            # Devices receive the roles in the network for all inputs, which always exists.
            network, network_id = compilation.loaded(())
            roles_found.append(
                TensorRole(network, network_id, role.position, role.is_output, frequency)
            )
        return roles_found


def _knows_memory(roles: Sequence[TensorRole]) -> bool:
    """Return whether all roles are of one device, whose feature level has such memory."""
    user = single_user(roles)
    backends = roles[0].network.backends
    return any(
        backend.get_id() == user and backend.device.feature_level >= _LEVEL for backend in backends
    )


def _describe(operand: Operand) -> str:
    """Type and quantisation for messages."""
    return f"{operand.type_name}, scale {operand.scale}, zero point {operand.zero_point}"
