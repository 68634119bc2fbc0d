from __future__ import annotations

from pathlib import Path

import pytest
from armpy_numba_acc.machine.processors.cores import usable_cores


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_every_processor_is_a_core_without_topology(tmp_path: Path) -> None:
    assert usable_cores(tmp_path, {0, 5, 6}) == 3


def test_threads_of_one_core_count_once(tmp_path: Path) -> None:
    lists = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}
    topology = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    write(tmp_path, {topology.format(cpu): text for cpu, text in lists.items()})
    assert usable_cores(tmp_path, range(4)) == 2
    assert usable_cores(tmp_path, {0, 2}) == 1


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("max 100000", 8), ("350000 100000", 3), ("50000 100000", 1), ("", 8), ("1600000 100000", 8)],
)
def test_a_control_group_limits_the_cores(tmp_path: Path, limit: str, cores: int) -> None:
    files = {"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/cpu.max": limit}
    assert usable_cores(write(tmp_path, files), range(8)) == cores


def test_a_limit_further_up_counts_as_well(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/a/b",
        "sys/fs/cgroup/a/b/cpu.max": "max 100000",
        "sys/fs/cgroup/a/cpu.max": "200000 100000",
    }
    assert usable_cores(write(tmp_path, files), range(8)) == 2


@pytest.mark.parametrize(("quota", "cores"), [("-1", 8), ("250000", 2)])
def test_the_first_version_of_control_groups_is_understood(
    tmp_path: Path, quota: str, cores: int
) -> None:
    folder = "sys/fs/cgroup/cpu,cpuacct/job"
    files = {
        "proc/self/cgroup": "3:memory:/other\n2:cpu,cpuacct:/job",
        f"{folder}/cpu.cfs_quota_us": quota,
        f"{folder}/cpu.cfs_period_us": "100000",
    }
    assert usable_cores(write(tmp_path, files), range(8)) == cores


@pytest.mark.parametrize(
    ("inner", "outer", "cores"),
    [
        ("400000 100000", "150000 100000", 1),
        ("150000 100000", "400000 100000", 1),
        ("max 100000", "300000 100000", 3),
        ("20000 100000", "max 100000", 1),
        ("290000 100000", "max 100000", 2),
        ("50000 10000", "max 100000", 5),
        ("nonsense", "200000 0", 8),
    ],
)
def test_the_least_limit_of_all_groups_holds_and_is_rounded_down(
    tmp_path: Path, inner: str, outer: str, cores: int
) -> None:
    files = {
        "proc/self/cgroup": "0::/pod/box",
        "sys/fs/cgroup/cpu.max": "700000 100000",
        "sys/fs/cgroup/pod/cpu.max": outer,
        "sys/fs/cgroup/pod/box/cpu.max": inner,
    }
    expected = min(cores, 7)
    assert usable_cores(write(tmp_path, files), range(8)) == expected


def test_a_container_sees_its_own_group_at_the_top(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:cpu,cpuacct:/docker/0123\n0::/docker/0123",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
    }
    assert usable_cores(write(tmp_path, files), range(8)) == 3


def test_a_group_above_the_namespace_is_left_out(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/../../other", "sys/fs/cgroup/cpu.max": "200000 100000"}
    assert usable_cores(write(tmp_path, files), range(8)) == 2


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("2:cpuacct,cpu:/job", "sys/fs/cgroup/cpu/job"),
        ("1:cpu:/job", "sys/fs/cgroup/cpu/job"),
        ("2:cpu,cpuacct:/job", "sys/fs/cgroup/cpu,cpuacct/job"),
    ],
)
def test_first_version_groups_are_found_wherever_they_are_mounted(
    tmp_path: Path, line: str, folder: str
) -> None:
    files = {
        "proc/self/cgroup": f"9:name=systemd:/x\n{line}",
        f"{folder}/cpu.cfs_quota_us": "250000",
        f"{folder}/cpu.cfs_period_us": "100000",
    }
    assert usable_cores(write(tmp_path, files), range(8)) == 2


def test_both_versions_beside_each_other_count(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "1:memory:/m\n0::/job",
        "sys/fs/cgroup/unified/job/cpu.max": "400000 100000",
    }
    assert usable_cores(write(tmp_path, files), range(8)) == 4


def test_the_fewest_of_processors_and_shares_count(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "600000 100000"}
    assert usable_cores(write(tmp_path, files), {1, 5}) == 2


def test_this_process_may_use_a_core() -> None:
    assert usable_cores() >= 1
