"""Compiled programs in files: how a backend writes its own down, and reads them again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    import numpy as np
    import numpy.typing as npt

    from armpy.backend.memory.packed_view import View
    from armpy.backend.options import OptionValues
    from armpy.backend.workload import IWorkload, WorkloadInfo
    from armpy.graph import SubgraphView


HOST_TARGET = "host"
"""The target that is this machine."""


class ProgramFit(Enum):
    """Fit of a saved program to this machine."""

    ACCEPTED = "accepted"
    """The program can be loaded."""

    REBUILD = "needs rebuild"
    """The program is this backend's, but of another version, processor or option: the layers are
    prepared anew from the graph that the file has for them.
    """

    FOREIGN = "foreign"
    """The program is for a device that is not here at all."""


class ProgramCheck(NamedTuple):
    """The answer of `IPrograms.check`."""

    fit: ProgramFit
    reason: str = ""  # why it is not accepted, for people; empty if it is


class SavedProgram(NamedTuple):
    """A program as it is in a file."""

    about: Mapping[str, object]
    """Small values: those that `IPrograms.check` needs, and others. Reports may show them."""
    parts: Mapping[str, bytes | npt.NDArray[np.uint8]]
    """mapping of str to (bytes or ndarray, uint8). Large data, by name; elements of other types as
    ``array.reshape(-1).view(np.uint8)``. Arrays that were read are read-only, begin at a multiple
    of 64 bytes and may be mapped from the file.
    """
    code: tuple[str, ...] = ()
    """Names of the parts that hold machine code or anything else that is executed. They are read as
    checked copies, and not at all where the file's code is not trusted.
    """
    views: Mapping[str, Sequence[View]] = MappingProxyType({})
    """Positions of arrays in parts that are not code, by the part's name, as `packed_view`
    describes them. A constant of the model that is among them is read from there, and is not
    written a second time; other arrays may be among them. A part without an entry is compared as a
    whole.
    """


class SavedKernels(NamedTuple):
    """Compiled code that many models share, for one target."""

    about: Mapping[str, object]
    """Small values: those that `check_kernels` needs, and others. Reports may show them."""
    kernels: Mapping[str, bytes]  # code by name


class IPrograms(ABC):
    """Writer and reader of the programs of `PreCompiled` layers.

    Notes
    -----
    `IBackendInternal.get_programs` gives it. A distribution may announce it besides in
    the entry-point group ``armpy.programs``, under the backend's id, as a class without parameters:
    then a prepared model starts without importing the backend. It must not need the backend's
    compiler, as files are used where that is not installed.
    """

    @property
    def targets(self) -> Sequence[str]:
        """Names of machines that programs can be made for, with ``host`` (this one).

        ``host`` is what `save` is for, the others are what `save_for` takes.
        """
        return (HOST_TARGET,)

    @abstractmethod
    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        """Write a program down.

        Parameters
        ----------
        program : object
            Program of a `PreCompiled` layer that this backend has made, or that `load` has given.
        options : mapping of str to value
            The versions it was made with.

        Returns
        -------
        SavedProgram or None
            Saved program; None if it cannot be kept: its layers are prepared anew at every load
            then.
        """

    @abstractmethod
    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Say whether a saved program can be used here, before the rest is read.

        Parameters
        ----------
        about : mapping
            Description of the saved program. It comes from a file: check the type of every value.
        options : mapping of str to value
            The backend options of the runtime and the network that the application set.
        """

    @abstractmethod
    def load(self, saved: SavedProgram) -> object:
        """The program, for a `PreCompiled` layer; not None.

        Raises
        ------
        ArmpyError
            If it cannot be used after all: the layers are prepared anew.
        """

    def create_workload(
        self, program: object, info: WorkloadInfo, options: OptionValues
    ) -> IWorkload | None:
        """Make a program's workload on host memory; None to have the backend make it.

        Parameters
        ----------
        program : object
            Result of `load`.
        options : mapping of str to value
            Options, as for `check`.
        """
        return None

    def save_for(
        self, view: SubgraphView, target: str, options: OptionValues
    ) -> SavedProgram | None:
        """Compile a subgraph for another machine than this one.

        Parameters
        ----------
        view : SubgraphView
            Part that a program of this backend was made of.
        target : str
            One of `targets`.

        Returns
        -------
        SavedProgram or None
            Saved program; None if the backend makes nothing for others, as by default.
        """
        return None

    def save_kernels(
        self, views: Sequence[SubgraphView], target: str, options: OptionValues
    ) -> SavedKernels | None:
        """Compile code that programs of some subgraphs share with other models.

        Parameters
        ----------
        views : sequence of SubgraphView
            Parts that programs of this backend were made of.
        target : str
            One of `targets`.

        Returns
        -------
        SavedKernels or None
            Shared kernels; None if programs share nothing, as by default. The result goes into a
            kernel pack, in which the backend looks before it compiles
            (`armpy.store.archive.kernel_packs.packs_of`).
        """
        return None

    def check_kernels(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Return whether the kernels of a pack can be used here.

        Parameters
        ----------
        about : mapping
            Description of `SavedKernels`. It comes from a file: check the type of every value.
        options : mapping of str to value
            Options, as for `check`.
        """
        return ProgramCheck(ProgramFit.ACCEPTED)
