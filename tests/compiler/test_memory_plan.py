from __future__ import annotations

from armpy.compiler.memory.plan import plan_memory
from armpy.graph.network import Network
from armpy_testing.models.networks import ADD, RELU, f32


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
