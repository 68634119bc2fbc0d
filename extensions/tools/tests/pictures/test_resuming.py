"""Jobs that stop anywhere and go on by their result files; files with the results of all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any  # JSON documents

import pytest

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

from armpy_testing.command_line import armpy_command  # noqa: E402
from armpy_testing.effort import effort  # noqa: E402
from armpy_tools.cli.pictures.jobs.result_folder import ResultFolder  # noqa: E402

from .picture_folders import LABELS, MODEL, make_pictures  # noqa: E402

COUNT = 30
DAMAGED = (0, 17)
MANY = 150
STOPS = effort(2, 10)

SLOW = """
import sys, time
from armpy_testing.command_line import armpy_command
from armpy_tools.cli.pictures.jobs.result_folder import ResultFolder
store = ResultFolder.store
ResultFolder.store = lambda folder, outcomes: (store(folder, outcomes), time.sleep(0.01))
sys.exit(armpy_command(sys.argv[1:]))
"""
"""The command, slow enough to be stopped between pictures."""

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    make_pictures(folder / "pictures", COUNT, DAMAGED)
    return folder


def arguments(place: Path, output: Path, *more: str) -> list[str]:
    truth = ("--truth", str(place / "truth.csv"), "--labels", LABELS)
    return ["pictures", MODEL, str(place / "pictures"), *truth, "--output", str(output), *more]


def run(capsys: Capsys, place: Path, output: Path, *more: str) -> tuple[int, str, str]:
    code = armpy_command(arguments(place, output, *more))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys: Capsys, place: Path, output: Path, *more: str) -> dict[str, Any]:
    _, out, _ = run(capsys, place, output, "--json", *more)
    parsed: dict[str, Any] = json.loads(out)
    return parsed


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder; paths in result files begin with ``OUTPUT``."""
    return {
        str(path.relative_to(folder)): path.read_bytes().replace(str(folder).encode(), b"OUTPUT")
        for path in folder.rglob("*")
        if path.is_file()
    }


def num_results(output: Path) -> int:
    return len([*output.glob("*.json")])


def interrupted(place: Path, output: Path, kind: int) -> int:
    """Run the command in a process of its own, and send it a signal after some pictures."""
    before = num_results(output)
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments(place, output, "--resume")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while process.poll() is None and num_results(output) < before + 5:
            time.sleep(0.001)
        process.send_signal(kind)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    if kind == signal.SIGINT:
        assert "with --resume goes on" in err
        assert "Traceback" not in err
    return process.returncode


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a system without SIGKILL")
def test_a_job_that_is_stopped_again_and_again_gives_the_results_of_one_go(
    tmp_path: Path, capsys: Capsys
) -> None:
    make_pictures(tmp_path / "pictures", MANY, DAMAGED)
    whole, output = tmp_path / "whole", tmp_path / "stopped"
    expected = document(capsys, tmp_path, whole)
    kinds = [(signal.SIGINT, signal.SIGKILL)[number % 2] for number in range(STOPS)]
    codes = [interrupted(tmp_path, output, kind) for kind in kinds]
    assert codes == [130, -signal.SIGKILL] * (STOPS // 2)
    stopped = document(capsys, tmp_path, output, "--resume")
    assert contents(output) == contents(whole)
    assert 5 * STOPS - len(DAMAGED) <= stopped["resumed"] < MANY
    assert stopped["accuracy"] == expected["accuracy"]
    assert (stopped["failed"], stopped["total"]) == (len(DAMAGED), MANY)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def removed(path: Path) -> None:
    path.unlink()


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.slow
def test_results_that_are_not_whole_are_computed_again(
    place: Path, tmp_path: Path, capsys: Capsys
) -> None:
    output = tmp_path / "results"
    whole = document(capsys, place, output)
    expected = contents(output)
    damages = [truncated, zeroed, emptied, removed]
    if hasattr(os, "mkfifo"):
        damages.append(piped)
    for number, damage in enumerate(damages, 1):
        damage(output / f"{number:04}.json")
    array = "StatefulPartitionedCall_1_0.npy"
    for number, damage in enumerate((truncated, emptied, removed), 10):
        damage(output / f"{number:04}" / array)
    resumed = document(capsys, place, output, "--resume")
    again = len(damages) + 3 + len(DAMAGED)  # pictures that could not be used are tried again
    assert resumed["resumed"] == COUNT - again
    assert resumed["accuracy"] == whole["accuracy"]
    assert contents(output) == expected


def test_one_picture_is_run_where_all_results_are_there(
    place: Path, tmp_path: Path, capsys: Capsys
) -> None:
    make_pictures(tmp_path / "pictures", 6)
    whole = document(capsys, tmp_path, tmp_path / "results")
    resumed = document(capsys, tmp_path, tmp_path / "results", "--resume")
    assert resumed["resumed"] == 5
    assert resumed["accuracy"] == whole["accuracy"]
    assert resumed["placement"]["layers"] == 10


def test_pictures_that_were_added_are_run(tmp_path: Path, capsys: Capsys) -> None:
    make_pictures(tmp_path / "pictures", 6)
    output = tmp_path / "results"
    run(capsys, tmp_path, output)
    # The same name in another folder: its result file has another name.
    other = tmp_path / "pictures" / "other"
    other.mkdir()
    shutil.copy(tmp_path / "pictures" / "0003.png", other)
    _, _, err = run(capsys, tmp_path, output, "--resume")
    assert "going on after 6 of 7 pictures" in err
    files = [json.loads(path.read_text())["file"] for path in output.glob("*.json")]
    assert sorted(files) == sorted(map(str, (tmp_path / "pictures").rglob("*.png")))


def test_a_picture_whose_label_has_changed_is_judged_anew(tmp_path: Path, capsys: Capsys) -> None:
    truth = make_pictures(tmp_path / "pictures", 6)
    output = tmp_path / "results"
    run(capsys, tmp_path, output)
    truth.write_text(truth.read_text().replace("three", "four"))
    resumed = document(capsys, tmp_path, output, "--resume")
    assert resumed["resumed"] == 5
    assert resumed["accuracy"] == document(capsys, tmp_path, tmp_path / "whole")["accuracy"]


@pytest.mark.parametrize(
    ("more", "names"),
    [
        (("--top", "3"), "top"),
        (("--resize", "crop"), "picture"),
        (("--backends", "CpuRef"), "backends"),
    ],
)
def test_results_made_otherwise_are_not_mixed_and_the_difference_is_named(
    more: tuple[str, ...], names: str, tmp_path: Path, capsys: Capsys
) -> None:
    make_pictures(tmp_path / "pictures", 3)
    output = tmp_path / "results"
    run(capsys, tmp_path, output)
    before = contents(output)
    code, out, err = run(capsys, tmp_path, output, "--resume", *more)
    assert (code, out) == (2, "")
    assert f"it differs in {names}" in err
    assert contents(output) == before


def test_a_result_file_is_there_only_after_the_other_files_of_its_picture(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_pictures(tmp_path / "pictures", 3)
    output = tmp_path / "results"
    run(capsys, tmp_path, output)
    assert num_results(output) == 3

    def stop(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)  # as of the user: a command's own would be an error

    # The second run writes arrays anew: the earlier result file would say that they are whole.
    monkeypatch.setattr(ResultFolder, "store", stop)
    assert run(capsys, tmp_path, output)[0] == 130
    assert num_results(output) == 2


def test_result_files_are_joined_by_their_lines(
    place: Path, tmp_path: Path, capsys: Capsys
) -> None:
    run(capsys, place, tmp_path / "results")
    run(capsys, place, tmp_path / "results.jsonl")
    joined = "".join(path.read_text() for path in sorted((tmp_path / "results").glob("*.json")))
    lines = [json.loads(line) for line in joined.splitlines()]
    expected = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    for line in lines:
        del line["judgement"], line["made_with"]
        line["files"] = []
    assert lines == expected


@pytest.mark.parametrize("output", [None, "results.csv", "results.jsonl", "results.npz"])
def test_only_a_folder_of_results_can_be_gone_on_with(
    output: str | None, place: Path, tmp_path: Path, capsys: Capsys
) -> None:
    more = [] if output is None else ["--output", str(tmp_path / output)]
    assert armpy_command(["pictures", MODEL, str(place / "pictures"), *more, "--resume"]) == 2
    assert "Expected pictures, and a folder as --output" in capsys.readouterr().err


@pytest.mark.sampled(2)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "npz"])
def test_a_file_of_results_is_written_over_and_is_the_same_each_time(
    suffix: str, place: Path, tmp_path: Path, capsys: Capsys
) -> None:
    output = tmp_path / f"results.{suffix}"
    output.write_text("of yesterday")
    run(capsys, place, output)
    whole = output.read_bytes()
    run(capsys, place, output)
    assert output.read_bytes() == whole
    assert [*tmp_path.iterdir()] == [output]


def test_a_run_that_fails_before_its_first_result_leaves_what_was_there(
    place: Path, tmp_path: Path, capsys: Capsys
) -> None:
    output = tmp_path / "results.csv"
    output.write_text("of yesterday")
    (tmp_path / "truth.csv").write_text(f"{place / 'pictures' / '0003.png'},thirteen\n")
    command = ["pictures", MODEL, "--labels", LABELS, "--truth", str(tmp_path / "truth.csv")]
    assert armpy_command([*command, "--output", str(output)]) == 2
    assert "is not a class of the model" in capsys.readouterr().err
    assert output.read_text() == "of yesterday"
