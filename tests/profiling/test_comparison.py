from __future__ import annotations

import json
from pathlib import Path

import pytest

from armpy.errors import ParserError
from armpy.profiling import (
    EventKind,
    EventLabel,
    Profiler,
    Share,
    Summary,
    compare_summaries,
    read_summary,
    to_json,
)


def share(layer: str, us: int, backend: str = "Npu", operation: str = "Conv") -> Share:
    return Share(f"{operation} '{layer}'", backend, operation, layer, 1, 1000 * us)


def part(name: str, us: int, backend: str = "Npu") -> Share:
    return Share(name, backend, total_ns=1000 * us)


def summary(
    executions: int,
    layers: list[Share],
    overhead: tuple[Share, ...] = (),
    waiting: tuple[Share, ...] = (),
) -> Summary:
    by_kind: dict[tuple[str, str], Share] = {}
    for entry in layers:
        kind = by_kind.setdefault(
            (entry.operation, entry.backend), Share(entry.operation, entry.backend, entry.operation)
        )
        kind.total_ns += entry.total_ns
    wall_ns = sum(entry.total_ns for entry in (*layers, *overhead, *waiting))
    operations = tuple(by_kind.values())
    return Summary(
        executions, wall_ns, wall_ns, tuple(layers), operations, overhead, waiting, (), (), 0
    )


def test_layers_are_compared_by_execution_and_sorted_by_their_change() -> None:
    before = summary(2, [share("a", 200), share("b", 40), share("c", 10)])
    after = summary(1, [share("a", 40), share("b", 25), share("c", 5)])
    comparison = compare_summaries(before, after)
    assert [(c.name, c.before_us, c.after_us) for c in comparison.layers] == [
        ("Conv 'a'", 100.0, 40.0),
        ("Conv 'b'", 20.0, 25.0),
        ("Conv 'c'", 5.0, 5.0),
    ]
    assert comparison.difference_us == -55.0


def test_differences_add_up_to_that_of_the_wall_time() -> None:
    before = summary(3, [share("a", 300), share("b", 30, "CpuRef")], (part("around", 6),))
    after = summary(1, [share("a", 90), share("d", 7)], (), (part("a thread", 8, ""),))
    comparison = compare_summaries(before, after)
    for kinds in (comparison.layers, comparison.operations):
        parts = [*kinds, *comparison.overhead, *comparison.waiting]
        assert sum(change.difference_us for change in parts) == pytest.approx(
            comparison.difference_us
        )


def test_layers_that_one_profile_has_as_one_are_compared_together() -> None:
    before = summary(1, [share("conv", 50), share("add", 20, operation="Add"), share("x", 5)])
    after = summary(1, [share("conv + add", 30, "Gpu"), share("x", 5)])
    joined, same = compare_summaries(before, after).layers
    assert (joined.name, joined.before_us, joined.after_us) == ("conv + add", 70.0, 30.0)
    assert joined.backend == "Npu -> Gpu"
    assert (same.name, same.difference_us) == ("Conv 'x'", 0.0)
    back = compare_summaries(after, before).layers[0]
    assert (back.before_us, back.after_us) == (30.0, 70.0)


def test_the_text_names_what_has_changed_most() -> None:
    text = str(compare_summaries(summary(1, [share("a", 5)]), summary(1, [share("a", 9)])))
    assert text.splitlines()[0] == "5.0 us before, 9.0 us after (+4.0 us) for one execution"
    assert "Conv 'a' (Npu)" in text


def profiler() -> Profiler:
    recorded = Profiler()
    recorded.record(EventLabel(EventKind.LAYER, "Conv 'a'", "Npu", "Conv", "a"), 1.0, 2.0)
    recorded.add("Execute", "", 0.5, 2.5)
    return recorded


@pytest.mark.parametrize("text", ["[]", '{"summary": {"layers": 1}}', "[" * 100_000])
def test_a_file_without_a_profile_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ParserError, match=r"a\.json: there is no profile in the file"):
        read_summary(path)


def test_times_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    document = json.loads(to_json(profiler()))
    document["summary"]["wall_ns"] = "much"
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ParserError, match="no profile"):
        read_summary(path)
