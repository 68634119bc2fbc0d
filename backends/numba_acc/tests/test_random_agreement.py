"""Random layers and small networks against CpuRef, on every instruction set.

A failure names the number of the network, which always gives the same one, compiled in the same
way.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from zlib import crc32

import numpy as np
import pytest
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing import sorted_steps, weights_i16
from armpy_numba_acc.program.choices import Choices, OptionT

from armpy.ops.operation import Array
from armpy.ops.tolerance import Tolerance, compare
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.effort import effort

from .random_networks import (
    TYPES,
    make_hostile,
    random_network,
    spreads,
)
from .support import (
    ISA_NAMES,
    ISAS,
    PRODUCT_ISAS,
    PRODUCT_NAMES,
    check_against_reference,
    check_outputs,
    release_guarded,
    run_compiled,
    run_reference,
    without_subnormals,
)

COUNT = effort(2)


@pytest.mark.parametrize("isa", PRODUCT_ISAS, ids=PRODUCT_NAMES)
def test_random_networks_agree(isa: Isa) -> None:
    failures = []
    start = COUNT * PRODUCT_ISAS.index(isa)  # each gets others
    for seed in range(start, start + COUNT):
        network, inputs = random_network(seed)
        try:
            check_outputs(
                network,
                run_reference(network, inputs),
                run_compiled(network, inputs, isa, *random_way(seed, isa)),
                isa.name,
            )
        except AssertionError as error:
            failures.append(f"{seed}: {error}")
        release_guarded()
    assert failures == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("module", "bound", "wrong", "seed"),
    [
        (weights_i16, "LARGEST_SUM", (1 << 17) - 1, 67),
        (sorted_steps, "_MOST", 129, 18),
        (sorted_steps, "_MOST", 128, 81),
    ],
)
def test_a_bound_that_is_too_large_is_found(
    module: ModuleType, bound: str, wrong: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    isa = next((isa for isa in ISAS if isa.has_saturating_bytes), None)
    if isa is None:
        pytest.skip("only where bytes are added in 16 bits")
    network, inputs = random_network(seed)
    expected = run_reference(network, inputs)
    monkeypatch.setattr(module, bound, wrong)
    with pytest.raises(AssertionError, match="elements are wrong"):
        check_against_reference(network, inputs, isa, expected)


class RandomChoices(Choices):
    """Choices by chance, the same for equal keys."""

    def __init__(self, isa: Isa, seed: int) -> None:
        super().__init__(isa, typical(isa))
        self._seed = seed

    def _measured_of(self, key: str, options: Sequence[OptionT]) -> OptionT:
        random = np.random.default_rng([self._seed, crc32(key.encode())])
        return options[int(random.integers(len(options)))]


def random_way(seed: int, isa: Isa) -> tuple[Choices | None, int]:
    """Choices of a network's program, and threads whose shares are run in turn; 0 for neither.

    One of four networks is lowered in ways that the model of the machine finds slower, too.
    """
    random = np.random.default_rng([seed, 1])
    choices = RandomChoices(isa, seed) if random.random() < 0.25 else None
    return choices, 2 * int(random.random() < 0.25)


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
def test_random_networks_agree_on_hostile_numbers(isa: Isa) -> None:
    failures = []
    count = max(1, COUNT // 4)
    start = len(TYPES) * count * ISAS.index(isa)
    for seed in range(start, start + len(TYPES) * count, len(TYPES)):  # those of floats
        network, friendly = random_network(seed)
        inputs = make_hostile(friendly, seed)
        with np.errstate(all="ignore"):
            expected = run_reference(network, without_subnormals(inputs))
        actual = run_compiled(network, inputs, isa)
        if spreads(network):
            expected = {name: with_nan_of(actual[name], array) for name, array in expected.items()}
        largest = max(np.abs(a[np.isfinite(a)]).max(initial=1.0) for a in expected.values())
        for name, array in expected.items():
            info = TensorInfo(array.shape, DataType.FLOAT32)
            difference = compare(array, actual[name], info, Tolerance(1e-5 * float(largest), 1e-6))
            if difference is not None:
                failures.append(f"{seed}: {difference}")
        release_guarded()
    assert failures == []


def with_nan_of(found: Array, expected: Array) -> Array:
    """What is expected, or NaN where that is found."""
    return np.where(np.isnan(found), found, expected)
