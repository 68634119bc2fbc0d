from __future__ import annotations

from itertools import combinations

from armpy_reference import ReferenceBackend
from hypothesis import given
from hypothesis import strategies as st

from armpy.backend import ALIGNMENT_BYTES, MemBlock
from armpy.compiler import optimize_graph
from armpy.compiler.memory.plan import plan_memory
from armpy.compiler.memory.strategies import pack
from armpy.graph.network import Network
from armpy.ops import Activation
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.networks import ADD, RELU, chain, diamond, f32

BLOCKS = st.lists(
    st.builds(
        lambda start, length, size: MemBlock(start, start + length, size),
        st.integers(0, 20),
        st.integers(0, 6),
        st.integers(0, 1000),
    ),
    max_size=25,
)


@given(BLOCKS)
def test_blocks_that_live_at_the_same_time_never_overlap(blocks: list[MemBlock]) -> None:
    offsets, _ = pack(blocks)
    for (a, at_a), (b, at_b) in combinations(zip(blocks, offsets, strict=True), 2):
        if a.start <= b.end and b.start <= a.end:
            assert at_a + a.size_bytes <= at_b or at_b + b.size_bytes <= at_a


@given(BLOCKS)
def test_every_offset_is_aligned(blocks: list[MemBlock]) -> None:
    assert all(offset % ALIGNMENT_BYTES == 0 and offset >= 0 for offset in pack(blocks)[0])


@given(BLOCKS)
def test_the_arena_ends_with_its_last_block(blocks: list[MemBlock]) -> None:
    offsets, total = pack(blocks)
    ends = [
        offset + -(-block.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        for block, offset in zip(blocks, offsets, strict=True)
    ]
    assert total == max(ends, default=0)


@given(BLOCKS)
def test_the_plan_is_the_same_every_time(blocks: list[MemBlock]) -> None:
    assert pack(blocks) == pack(list(blocks))


def test_the_smallest_gap_that_fits_is_taken() -> None:
    # While block 4 lives there are gaps of 128 and of 64 bytes between the others.
    blocks = [
        MemBlock(0, 9, 640),
        MemBlock(0, 1, 320),
        MemBlock(0, 9, 256),
        MemBlock(0, 1, 192),
        MemBlock(0, 9, 128),
        MemBlock(2, 9, 64),
    ]
    offsets, total = pack(blocks)
    assert offsets == [0, 640, 960, 1216, 1408, 1216]
    assert total == 1536


def test_a_chain_needs_two_buffers_however_long_it_is() -> None:
    graph = chain(10, (1000,))
    network = optimize_graph(graph, [ReferenceBackend()])
    size = 4032  # 4000 bytes, aligned
    assert network.placement.peak_bytes == 2 * size
    assert network.placement.peak_bytes < 9 * size


def test_inputs_results_and_constants_take_no_place_in_the_arena() -> None:
    graph = diamond()
    plan = plan_memory(graph, {layer.id: "Cpu" for layer in graph.layers})
    assert {value.name for value in plan.tensors} == {"top", "left", "right"}


def test_an_unread_value_has_a_place_while_it_is_written() -> None:
    net = Network()
    x = net.input("x", f32(4))
    net.add(RELU, x, name="dead")
    net.output("y", net.add(RELU, x))
    graph = net.build()
    plan = plan_memory(graph, {0: "Cpu", 1: "Cpu"})
    assert plan.arena_bytes == {"Cpu": 64}


def test_every_backend_has_an_arena_of_its_own() -> None:
    network = optimize_graph(diamond(), [FakeBackend("Fake", {Activation}), ReferenceBackend()])
    assert network.memory.arena_bytes == {"Fake": 64, "CpuRef": 128}
    assert network.placement.peak_bytes == 192


def test_what_variables_keep_is_not_in_the_arena() -> None:
    net = Network()
    state = net.variable("v", f32(4))
    total = net.add(ADD, state, state)
    net.assign(state, total)
    net.output("y", net.add(RELU, total))
    graph = net.build()
    assert plan_memory(graph, {0: "Cpu", 1: "Cpu"}).tensors == {}


def test_an_open_shape_has_no_plan_yet() -> None:
    network = optimize_graph(chain(2, (None,)), [ReferenceBackend()])
    assert network.memory.tensors == {}
    assert network.placement.peak_bytes == 0


def test_tensors_without_elements_take_no_memory() -> None:
    graph = chain(3, (0,))
    assert plan_memory(graph, dict.fromkeys(range(3), "Cpu")).arena_bytes == {"Cpu": 0}
