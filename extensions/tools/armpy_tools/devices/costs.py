"""Cost model of a backend: seconds and power of layers, parts and copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from armpy.compiler.devices import FigureSource
from armpy.core.dataclass import dataclass
from armpy.graph import Layer
from armpy.inspect import Work, family_of, work_of
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId
from armpy_tools.devices.kinds import kind_of, type_class


@dataclass(frozen=True, slots=True)
class Rate:
    """Time of layers of one kind: ``overhead_s + flops * flop_s + bytes * byte_s``.

    Parameters
    ----------
    overhead_s : float
        For each layer, seconds.
    flop_s, byte_s : float
        For each unit of `Work`, seconds.
    power : float
        Against one busy processor of this machine.
    """

    overhead_s: float
    flop_s: float = 0.0
    byte_s: float = 0.0
    power: float = 1.0

    def seconds(self, work: Work) -> float:
        """Return how long this work takes."""
        return self.overhead_s + work.flops * self.flop_s + work.size_bytes * self.byte_s

    def scaled(self, time: float, power: float = 1.0) -> Rate:
        """The rate of something that takes so many times as long, and as much power."""
        scaled = (self.overhead_s * time, self.flop_s * time, self.byte_s * time)
        return Rate(*scaled, self.power * power)


@dataclass(frozen=True, slots=True)
class CopyRate:
    """Time of copies: ``overhead_s + bytes * byte_s``.

    Parameters
    ----------
    overhead_s, byte_s : float
        For each copy, and for each byte of it; seconds.
    """

    overhead_s: float = 0.0
    byte_s: float = 0.0

    def seconds(self, size_bytes: float) -> float:
        """Return how long a copy of so many bytes takes."""
        return self.overhead_s + size_bytes * self.byte_s


@dataclass(frozen=True, slots=True)
class BackendCosts:
    """Costs of one backend's work on one machine.

    Parameters
    ----------
    backend : str
    source : FigureSource
    rates : mapping of str to Rate
        By ``kind/type class``, ``name/type class``, ``family/type class`` or ``*``; see
        `rate_of`.
    part_s : float
        For each execution of a part of a network, beside its layers; seconds.
    copy_in, copy_out : CopyRate
        From the host's memory into the backend's own, and back.
    shares_host_memory : bool
        Whether it works in the host's memory, so that there are no copies.
    """

    backend: BackendId
    source: FigureSource
    rates: Mapping[str, Rate] = field(default_factory=dict)
    part_s: float = 0.0
    copy_in: CopyRate = CopyRate()
    copy_out: CopyRate = CopyRate()
    shares_host_memory: bool = True

    def rate_of(self, kind: str, types: str) -> Rate:
        """The rate that comes nearest to a kind of layer and class of data types.

        Notes
        -----
        That of the kind with the class; of the operation's name with it; of the operation's
        family with it (``products``, ``elements``, ``moves``); the kind, name and family with
        ``float32``; of everything. A rate of nothing at all takes no time.
        """
        name = kind.partition(":")[0]
        for classes in dict.fromkeys((types, "float32")):
            for key in (kind, name, family_of(name)):
                if (rate := self.rates.get(f"{key}/{classes}")) is not None:
                    return rate
        return self.rates.get("*", Rate(0.0))

    def layer_rate(self, layer: Layer) -> Rate:
        """The rate of a layer."""
        infos = layer.input_infos, layer.output_infos
        return self.rate_of(kind_of(layer.operation, infos[0]), type_class(*infos))

    def layer_seconds(self, layer: Layer) -> float:
        """Return how long a layer takes, without what its part and copies take."""
        work = work_of(layer.operation, layer.input_infos, layer.output_infos)
        return self.layer_rate(layer).seconds(work)

    def layer_energy(self, layer: Layer) -> float:
        """Power times time of a layer, in seconds of one busy processor."""
        return self.layer_seconds(layer) * self.layer_rate(layer).power

    def operation_seconds(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> float:
        """Return how long an operation takes that is not a layer of a graph."""
        rate = self.rate_of(kind_of(operation, inputs), type_class(inputs, outputs))
        return rate.seconds(work_of(operation, inputs, outputs))


def transition_seconds(
    writer: BackendCosts | None, reader: BackendCosts | None, size_bytes: float
) -> float:
    """Return how long it takes to hand a tensor from one backend to another.

    Parameters
    ----------
    writer, reader : BackendCosts, optional
        None for the application, whose tensors are in the host's memory.
    size_bytes : float

    Notes
    -----
    Nothing within one backend, nor between backends in the host's memory; else the copies out of
    the writer's memory and into the reader's. The time of the reader's part is not in it.
    """
    if writer is reader or (writer and reader and writer.backend == reader.backend):
        return 0.0
    seconds = 0.0
    if writer is not None and not writer.shares_host_memory:
        seconds += writer.copy_out.seconds(size_bytes)
    if reader is not None and not reader.shares_host_memory:
        seconds += reader.copy_in.seconds(size_bytes)
    return seconds
