from __future__ import annotations

import pytest

from armpy_tools.report.name_groups import name_groups


def groups_of(sizes: dict[str, float]) -> dict[str, list[str]]:
    return {group.prefix: list(group.names) for group in name_groups(sizes)}


def test_layers_of_a_block_are_one_group_and_the_largest_is_first() -> None:
    blocks = {f"net/block_{n}/{part}": float(n) for n in (1, 2, 10) for part in ("conv", "add")}
    groups = groups_of(blocks | {"net/head": 0.5})
    assert list(groups) == ["net/block_10/", "net/block_2/", "net/block_1/", "net/head"]
    assert groups["net/block_1/"] == ["net/block_1/conv", "net/block_1/add"]


def test_single_names_are_no_groups() -> None:
    sizes = {f"relu_{n}": 1.0 for n in range(9)} | {"dense": 1.0}
    assert set(groups_of(sizes)) == {"relu_", "dense"}


def test_small_groups_are_not_divided() -> None:
    small = {f"tail/{a}/{b}": 0.01 for a in "ab" for b in "cd"}
    large = {f"body/{a}/{b}": 1.0 for a in "ab" for b in "cd"}
    assert set(groups_of(large | small)) == {"body/a/", "body/b/", "tail/"}


@pytest.mark.parametrize("names", [[], ["one"], ["same", "same/inner"]])
def test_every_name_is_in_one_group(names: list[str]) -> None:
    groups = groups_of(dict.fromkeys(names, 1.0))
    assert sorted(name for group in groups.values() for name in group) == sorted(names)


def test_there_are_not_too_many_groups() -> None:
    sizes = {f"part{n}/{x}": 1.0 for n in range(100) for x in "ab"}
    assert len(groups_of(sizes)) == 1
