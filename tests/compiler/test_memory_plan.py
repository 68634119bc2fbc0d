from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from armpy.backend import ALIGNMENT_BYTES, MemBlock
from armpy.compiler.memory.plan import plan_memory
from armpy.compiler.memory.strategies import pack
from armpy.graph.network import Network
from armpy_testing.models.networks import ADD, RELU, f32

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


def test_an_unread_value_has_a_place_while_it_is_written() -> None:
    net = Network()
    x = net.input("x", f32(4))
    net.add(RELU, x, name="dead")
    net.output("y", net.add(RELU, x))
    graph = net.build()
    plan = plan_memory(graph, {0: "Cpu", 1: "Cpu"})
    assert plan.arena_bytes == {"Cpu": 64}


def test_what_variables_keep_is_not_in_the_arena() -> None:
    net = Network()
    state = net.variable("v", f32(4))
    total = net.add(ADD, state, state)
    net.assign(state, total)
    net.output("y", net.add(RELU, total))
    graph = net.build()
    assert plan_memory(graph, {0: "Cpu", 1: "Cpu"}).tensors == {}
