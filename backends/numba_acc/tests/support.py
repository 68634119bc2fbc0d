"""Compiles networks for an instruction set, runs them, and compares with CpuRef."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.matrix_unit import may_use_matrix_unit
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.native import elf
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.passes.support import support
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime.instance import Instance, LoadedCode
from armpy_numba_acc.store import keys, objects
from armpy_numba_acc.store.objects import kernel_addresses
from llvmlite import binding

from armpy import Network, Runtime, RuntimeOptions
from armpy.graph import Graph, SubgraphView
from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT, Tolerance, compare
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.comparison.exact_layers import after_floats
from armpy_testing.compared_arrays import of_largest
from armpy_testing.effort import IS_CAMPAIGN, first_and_another


def forget_sources() -> None:
    """Have digests of the sources be computed anew."""
    caches = (keys._origin, keys._tools, keys._sources_digest, keys.code_digest, keys._file_digest)
    for known in caches:
        known.cache_clear()


ISAS = tuple(isa for isa in host_isas() if not isa.has_matrix_unit)
PRODUCT_ISAS = (
    *ISAS,
    *(
        isa
        for isa in host_isas()
        if isa.matrix_unit == "emulated" or (isa.has_matrix_unit and may_use_matrix_unit())
    ),
)
"""The same with matrix units, which products alone differ for."""

ISA_NAMES = [isa.name for isa in ISAS]
PRODUCT_NAMES = [isa.name for isa in PRODUCT_ISAS]


def isas_of_this_test(isas: Sequence[Isa] = ISAS) -> Sequence[Isa]:
    """The best instruction set, in every third test another one as well; all in the full form."""
    if IS_CAMPAIGN:
        return isas
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    return first_and_another(isas, test)


_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_PAGE = mmap.PAGESIZE
_GUARDED: list[mmap.mmap] = []
"""Mappings stay until `release_guarded`: arrays that are not tracked may point into them."""


def run_compiled(
    network: Network | Graph,
    inputs: Mapping[str, Array],
    isa: Isa,
    choices: Choices | None = None,
    num_threads: int = 0,
) -> dict[str, Array]:
    """Outputs of a network that is compiled as one region.

    Parameters
    ----------
    choices
        As `lower_region` takes them.
    num_threads
        Whose shares are run in turn, as `run_in_turn` does; the program runs by itself if it is 0.

    Notes
    -----
    Inputs and outputs lie directly in front of memory that cannot be touched; outputs hold
    garbage at first.
    """
    graph = graph_of(network)
    assert not refusals(graph)
    view = SubgraphView.of(graph, graph.layers)
    inputs_guarded = [guarded(np.ascontiguousarray(inputs[value.name])) for value in view.inputs]
    outputs = {value: _garbage(value.info) for value in view.outputs}
    tensors = [*inputs_guarded, *outputs.values()]
    program = lower_region(view, isa, max(num_threads, 1), choices)
    if num_threads:
        run_in_turn(program, isa, tensors, program.num_threads)
    else:
        Instance(LoadedCode(program, isa)).run(tensors)
    return {n: outputs[value] for n, value in zip(graph.output_names, graph.outputs, strict=True)}


def refusals(graph: Graph) -> list[str]:
    """Reasons for the layers of a graph that are not lowered."""
    reasons = []
    for layer in graph.layers:
        infos = [None if value is None else value.info for value in layer.inputs]
        refusal = support(layer.operation, infos, layer.output_infos)
        if not refusal:
            reasons.append(f"{layer.name}: {refusal}")
    return reasons


def graph_of(network: Network | Graph) -> Graph:
    """A graph, or the one that a network builds."""
    return network.build() if isinstance(network, Network) else network


def program_of(network: Network | Graph, isa: Isa = ISAS[0]) -> Program:
    """What a network is compiled to as one region."""
    graph = graph_of(network)
    return lower_region(SubgraphView.of(graph, graph.layers), isa)


def run_in_turn(program: Program, isa: Isa, tensors: Sequence[Array], num_threads: int) -> None:
    """Run every command of a program in shares, as threads claim them: the last ones first."""
    addresses = kernel_addresses(program.kernels, isa)
    arena = np.full(program.arena_bytes + 64, 0x55, np.uint8)
    memory = [arena[-arena.ctypes.data % 64 :], program.constants, *tensors]
    arguments = program.argument_values.copy()
    failure = np.zeros(2, np.int64)
    for base, array in ((Space.FAILURE, failure), *enumerate(memory)):
        arguments[program.argument_bases == base] += array.ctypes.data
    starts = arguments.ctypes.data + 8 * program.argument_starts.astype(np.int64)
    for kernel, start in zip(program.command_kernels, starts, strict=False):
        function = _KERNEL(addresses[program.kernels[kernel]])
        num_shares = 3 * num_threads if num_threads > 1 else 1
        first = num_shares
        for turn in itertools.count():
            last, first = first, max(first - 1 - turn % 3, 0)
            # As `armpy_numba_acc.llvm.threads.sharing.shares_of` puts them together.
            shares = (turn % num_threads << 32) + (last - first - 1 << 16) + first
            function(int(start), shares, num_shares)
            if first == 0:
                break
    assert not failure.any()


def run_reference(network: Network | Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Outputs of a network on CpuRef."""
    runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
    number = runtime.load_network(network)
    try:
        return runtime.enqueue_workload(number, inputs)
    finally:
        runtime.unload_network(number)


def check_against_reference(
    network: Network,
    inputs: Mapping[str, Array],
    isa: Isa,
    expected: Mapping[str, Array] | None = None,
    tolerance: Tolerance | None = None,
) -> None:
    """Check every output; `expected` spares running CpuRef again.

    Notes
    -----
    What is computed in floating point is compared relative to the output's largest element, as
    sums are long; all else has to be equal.
    """
    expected = run_reference(network, inputs) if expected is None else expected
    check_outputs(network, expected, run_compiled(network, inputs, isa), isa.name, tolerance)


def check_outputs(
    network: Network | Graph,
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    where: str,
    tolerance: Tolerance | None = None,
) -> None:
    """Check outputs that were computed somewhere; rules as of `check_against_reference`."""
    graph = graph_of(network)
    outputs = dict(zip(graph.output_names, graph.outputs, strict=True))
    inexact = after_floats(graph.layers)
    for name, want in expected.items():
        allowed, info = tolerance, outputs[name].info
        if allowed is None and outputs[name] not in inexact:
            allowed = EXACT
        elif allowed is None and info.data_type is DataType.FLOAT32 and want.size:
            allowed = of_largest(want, 1e-5, relative=5 * 2.0**-23, least=1.0)
        difference = compare(want, actual[name], info, allowed)
        assert difference is None, f"{where}, output {name!r}: {difference}"


def without_subnormals(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs with zeros where programs take numbers for zero."""
    return {
        name: np.where(np.abs(array) < 2.0**-126, np.copysign(0, array), array).astype(array.dtype)
        if array.dtype == np.float32
        else array
        for name, array in inputs.items()
    }


def guarded(array: Array) -> Array:
    """A copy that ends where memory ends that can be read."""
    if not array.nbytes or not hasattr(mmap, "MAP_ANONYMOUS"):
        return array.copy()
    pages = -(-array.nbytes // _PAGE)
    memory = mmap.mmap(-1, (pages + 1) * _PAGE)
    _GUARDED.append(memory)
    whole = np.frombuffer(memory, np.uint8)
    last = ctypes.c_void_p(whole.ctypes.data + pages * _PAGE)
    assert ctypes.CDLL(None).mprotect(last, ctypes.c_size_t(_PAGE), 0) == 0
    copy: Array = whole[pages * _PAGE - array.nbytes : pages * _PAGE].view(array.dtype)
    copy = copy.reshape(array.shape)
    copy[...] = array
    return copy


def release_guarded() -> None:
    """Let go of all copies of `guarded`: a process can have only so many mappings."""
    _GUARDED.clear()


def _garbage(info: TensorInfo) -> Array:
    """An output that has not been written."""
    size = info.size_bytes
    array: Array = np.full(size, 0x55, np.uint8)
    if info.data_type is DataType.BOOLEAN:
        array[:] = 1
    return guarded(array.view(info.data_type.dtype).reshape(info.known_shape))


def random_array(info: TensorInfo, seed: int = 0) -> Array:
    """Elements of any value that a tensor can have; floats around 0."""
    random = np.random.default_rng(seed)
    dtype = info.data_type.dtype
    if dtype.kind == "f":
        return random.normal(size=info.known_shape).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, info.known_shape).astype(dtype)
    low, high = info.data_type.integer_range
    return random.integers(low, high, info.known_shape, dtype, endpoint=True)


def run_apart(script: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a script in a process that no tool measures: interrupted, its locks might stay held."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))
    }
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    # The script may import what lies beside this module by relative names; -P leaves the working
    # directory out, whose tests/ may be another one.
    command = [sys.executable, "-P", "-c", f"__package__ = {__package__!r}\n{script}"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=seconds
    )


def note_compiled(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """Have kernels noted instead of compiled, in a list that grows."""
    kernels: list[Kernel] = []

    def compiled(kernel: Kernel, _: Isa) -> bytes:
        kernels.append(kernel)
        return kernel.symbol.encode() * 50

    monkeypatch.setattr(objects, "_compiled", compiled)
    return kernels


def addresses_of(codes: Mapping[Kernel, bytes]) -> dict[Kernel, int]:
    """Load object code of kernels; the address of each."""
    symbols = elf.load({kernel.symbol: code for kernel, code in codes.items()})
    return {kernel: symbols[kernel.symbol] for kernel in codes}


def instructions(code: bytes) -> list[bytes]:
    """Of an object file; its names have numbers, which Numba counts in each process."""
    sections = binding.ObjectFileRef.from_data(code).sections()
    return [part.data() for part in sections if part.is_text()]
