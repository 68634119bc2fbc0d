from __future__ import annotations

import pytest
from armpy_numba_acc import NumbaBackend
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.cost_model.figures import SAPPHIRE_RAPIDS
from armpy_numba_acc.machine.isa import NAMES
from armpy_numba_acc.machine.processors.cores import usable_cores
from armpy_numba_acc.machine.processors.matrix_unit import may_use_matrix_unit
from armpy_numba_acc.options import ISA_VARIABLE, OPTIONS, ResolvedOptions

from armpy import Runtime, RuntimeOptions
from armpy.errors import InvalidArgumentError
from armpy.plugins import BackendRegistry

from .networks import convolutions, image

HOST = [isa.name for isa in host_isas() if isa.matrix_unit != "amx" or may_use_matrix_unit()]


def program_isa_and_threads(**options: object) -> tuple[str, int]:
    """What a network is compiled for."""
    registry = BackendRegistry()
    registry.register("NumbaAcc", NumbaBackend)
    with Runtime(RuntimeOptions(registry=registry, **options)) as runtime:  # type: ignore[arg-type]  # any option
        network = runtime.load_network(convolutions(num_layers=1))
        optimized = runtime.get_network(network).optimized
        assert optimized is not None
        (layer,) = optimized.graph.layers
        program = layer.operation.program  # type: ignore[attr-defined]  # a PreCompiled
        runtime.enqueue_workload(network, image())
    return program.isa, program.num_threads


def test_by_default_the_best_instructions_and_every_core_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(ISA_VARIABLE, raising=False)
    assert program_isa_and_threads() == (HOST[0], usable_cores())


@pytest.mark.slow
@pytest.mark.parametrize("name", HOST)
def test_options_choose_instructions_and_threads(name: str) -> None:
    options = {"NumbaAcc": {"isa": name, "num_threads": 3}}
    assert program_isa_and_threads(backend_options=options) == (name, 3)


def test_the_runtimes_number_of_threads_is_taken() -> None:
    assert program_isa_and_threads(num_threads=5)[1] == 5


def test_the_variable_chooses_where_no_option_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ISA_VARIABLE, "portable")
    assert ResolvedOptions.of().isa.name == "portable"
    assert ResolvedOptions.of({"isa": HOST[0]}).isa.name == HOST[0]


@pytest.mark.parametrize(("name", "text"), [("sse9", "does not exist"), (None, "this CPU lacks")])
def test_instructions_that_cannot_be_used_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str | None, text: str
) -> None:
    name = name or next(n for n in NAMES if n not in HOST)
    monkeypatch.setenv(ISA_VARIABLE, name)
    with pytest.raises(InvalidArgumentError, match=f"^{ISA_VARIABLE}: .*'{name}', which {text}"):
        ResolvedOptions.of()


def test_an_option_is_refused_with_what_the_processor_has() -> None:
    name = next(n for n in NAMES if n not in HOST)
    with pytest.raises(InvalidArgumentError, match=f"^isa: .*Expected {HOST[0]} or .*'{name}'"):
        ResolvedOptions.of({"isa": name})


def test_an_unknown_instruction_set_is_refused_where_it_is_set() -> None:
    options = RuntimeOptions(["NumbaAcc"], backend_options={"NumbaAcc": {"isa": "foo"}})
    with pytest.raises(InvalidArgumentError, match=r"'isa' cannot .* 'avx2', .*got 'foo'"):
        Runtime(options)


def test_every_option_says_what_it_is_for() -> None:
    assert [option.name for option in OPTIONS] == ["num_threads", "isa", "fast_math_enabled"]
    assert all(option.help.endswith(".") for option in OPTIONS)


def test_the_environment_says_whose_figures_choices_are_made_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARMPY_NUMBA_MACHINE", "sapphire-rapids")
    assert ResolvedOptions.of().model is SAPPHIRE_RAPIDS
    monkeypatch.setenv("ARMPY_NUMBA_MACHINE", "abacus")
    with pytest.raises(InvalidArgumentError, match=r"typical or zen4 .*'abacus'"):
        ResolvedOptions.of()
