"""Jobs that stop anywhere and go on: what is there in the end is what one go gives."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any  # JSON documents

import pytest

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

from armpy.cli.__main__ import main  # noqa: E402
from armpy.cli.run.jobs import job_output  # noqa: E402
from armpy.cli.run.jobs.journal import begin_journal, find_remnant  # noqa: E402
from tests.cli.jobs.pictures import LABELS, MODEL, make_pictures  # noqa: E402
from tests.support.effort import effort  # noqa: E402
from tests.support.tflite_writer import TfliteModel  # noqa: E402

COUNT = 90
DAMAGED = (0, 1, 17, 50, 89)
MANY = 300
SUFFIXES = ("csv", "jsonl", "npz")
PLACES = effort(4, 10)
TORN = effort(12, 100, "ARMPY_TORN_JOBS")

SLOW = """
import sys, time
from armpy.cli.__main__ import main
from armpy.cli.run.jobs.job_output import JobOutput
store = JobOutput.store
JobOutput.store = lambda output, outcomes: (store(output, outcomes), time.sleep(0.002))
sys.exit(main(sys.argv[1:]))
"""
"""The command, slow enough to be met anywhere."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    make_pictures(folder / "pictures", COUNT, DAMAGED)
    return folder


def arguments(place: Path, output: Path, *more: str) -> list[str]:
    truth = ("--truth", str(place / "truth.csv"), "--labels", LABELS)
    return ["run", MODEL, str(place / "pictures"), *truth, "--output", str(output), *more]


def run(
    capsys: pytest.CaptureFixture[str], place: Path, output: Path, *more: str
) -> tuple[int, str, str]:
    code = main(arguments(place, output, *more))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(
    capsys: pytest.CaptureFixture[str], place: Path, output: Path, *more: str
) -> dict[str, Any]:
    _, out, _ = run(capsys, place, output, "--json", *more)
    found: dict[str, Any] = json.loads(out)
    return found


def beside(output: Path) -> list[str]:
    """What is there of a job besides its output."""
    return sorted(path.name for path in output.parent.glob(f"{output.name}?*"))


def interrupted(place: Path, output: Path, is_resumed: bool, done: int, kind: int) -> int:
    """Run the command in a process of its own, and send it a signal behind so many pictures."""
    more = ["--resume"] if is_resumed else []
    journal = Path(f"{output}.job")
    before = journal.read_bytes().count(b"\n") if journal.exists() else 0
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments(place, output, *more)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while process.poll() is None:
            lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
            if lines >= before + done:
                break
            time.sleep(0.001)
        process.send_signal(kind)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    if kind == signal.SIGINT:
        assert "with --resume goes on" in err
        assert "Traceback" not in err
    return process.returncode


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a system without SIGKILL")
def test_a_job_that_is_stopped_again_and_again_gives_the_file_of_one_go(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "many"
    place.mkdir()
    make_pictures(place / "pictures", MANY, DAMAGED)
    whole = document(capsys, place, tmp_path / f"whole.{suffix}")
    chance = random.Random(suffix)
    output = tmp_path / f"stopped.{suffix}"
    codes = [
        interrupted(
            place,
            output,
            number > 0,
            chance.randint(2, 24),
            (signal.SIGINT, signal.SIGKILL)[number % 2],
        )
        for number in range(PLACES)
    ]
    assert codes == [130, -signal.SIGKILL] * (PLACES // 2)
    assert output.exists() == (suffix != "npz")  # an archive is there when it is whole
    found = document(capsys, place, output, "--resume")
    assert output.read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()
    assert beside(output) == []
    assert 0 < found["resumed"] < MANY
    assert found["accuracy"] == whole["accuracy"]
    assert (found["failed"], found["total"]) == (len(DAMAGED), MANY)
    assert found["pictures"] == whole["pictures"][found["resumed"] :]


def stop(_: object) -> None:
    raise KeyboardInterrupt


def stopped(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    place: Path,
    output: Path,
    *more: str,
) -> None:
    """Leave a job whose results are all written, and not finished."""
    with monkeypatch.context() as patch:
        patch.setattr(job_output.JobOutput, "finish", stop)
        code, out, err = run(capsys, place, output, *more)
    assert (code, out) == (130, "")
    assert f"{COUNT} of {COUNT} pictures are kept" in err


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_whatever_a_system_that_went_down_has_kept_the_file_is_that_of_one_go(
    suffix: str,
    place: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Results and journal end anywhere, the journal ahead of the results as well; or hold zeros."""
    whole = document(capsys, place, tmp_path / f"whole.{suffix}")
    left = tmp_path / f"left.{suffix}"
    stopped(capsys, monkeypatch, place, left)
    results = Path(f"{left}.part") if suffix == "npz" else left
    kept, journal = results.read_bytes(), Path(f"{left}.job").read_bytes()
    heading = journal.index(b"\n") + 1
    chance = random.Random(suffix)
    for number in range(TORN):
        damaged = kept[: chance.randrange(len(kept) + 1)]
        if number % 3 == 1 and len(damaged) > 40:
            at = chance.randrange(len(damaged) - 40)
            damaged = damaged[:at] + bytes(40) + damaged[at + 40 :]
        results.write_bytes(damaged)
        Path(f"{left}.job").write_bytes(journal[: chance.randint(heading, len(journal))])
        found = document(capsys, place, left, "--resume")
        assert left.read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes(), number
        assert found["accuracy"] == whole["accuracy"]
        assert found["failed"] == len(DAMAGED)
        assert beside(left) == []
        if suffix == "npz":
            left.unlink()


def test_a_folder_of_arrays_is_filled_from_where_files_lack(
    place: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(capsys, place, tmp_path / "whole", "--save-pictures", str(tmp_path / "drawn"))
    shutil.copytree(tmp_path / "drawn", tmp_path / "expected")
    output = tmp_path / "stopped"
    stopped(capsys, monkeypatch, place, output, "--save-pictures", str(tmp_path / "drawn"))
    torn = output / "0042" / "StatefulPartitionedCall_1_0.npy"
    torn.write_bytes(torn.read_bytes()[:7])
    (output / "0070" / torn.name).unlink()
    _, _, err = run(capsys, place, output, "--resume", "--save-pictures", str(tmp_path / "drawn"))
    assert f"going on behind 41 of {COUNT} pictures" in err

    assert contents(output) == contents(tmp_path / "whole")
    assert contents(tmp_path / "drawn") == contents(tmp_path / "expected")


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_job_goes_on_between_two_batches(
    place: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mean over a batch tells which pictures the model was given together."""
    model = TfliteModel()
    graph = model.subgraph()
    x, y = (graph.tensor(name, (2, 16, 16, 1), "FLOAT32") for name in "xy")
    axes = graph.tensor("axes", (1,), "INT32", data=[0])
    mean = graph.tensor("mean", (1, 16, 16, 1), "FLOAT32")
    graph.operator("MEAN", [x, axes], [mean], options={"keep_dims": True})
    graph.operator("SUB", [x, mean], [y])
    graph.inputs(x)
    graph.outputs(y)
    (tmp_path / "two.tflite").write_bytes(model.to_bytes())
    command = ["run", str(tmp_path / "two.tflite"), str(place / "pictures"), "--output"]
    assert main([*command, str(tmp_path / "whole.npz")]) == 1
    left = tmp_path / "left.npz"
    with monkeypatch.context() as patch:
        patch.setattr(job_output.JobOutput, "finish", stop)
        assert main([*command, str(left)]) == 130
    # The third of a pair of pictures that lie together, so that the pair has to be run again.
    os.truncate(f"{left}.part", 7 * (os.path.getsize(f"{left}.part") // (COUNT - len(DAMAGED))))
    assert main([*command, str(left), "--resume"]) == 1
    assert left.read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize(
    ("more", "names"),
    [
        (("--top", "3"), "top"),
        (("--softmax",), "softmax"),
        (("--resize", "crop"), "picture"),
        (("--backends", "CpuRef"), "backends"),
    ],
)
def test_another_job_is_not_gone_on_with_and_the_difference_is_named(
    more: tuple[str, ...],
    names: str,
    place: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "results.csv"
    stopped(capsys, monkeypatch, place, output)
    before = contents(tmp_path)
    code, out, err = run(capsys, place, output, "--resume", *more)
    assert (code, out) == (2, "")
    assert f"it differs in {names}" in err
    assert contents(tmp_path) == before


def test_other_pictures_labels_truths_and_models_are_another_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = make_pictures(tmp_path / "pictures", 12)
    labels = tmp_path / "labels.txt"
    model = tmp_path / "model.tflite"
    shutil.copy(LABELS, labels)
    shutil.copy(MODEL, model)
    command = ["run", str(model), str(tmp_path / "pictures"), "--labels", str(labels)]
    command += ["--truth", str(truth), "--output", str(tmp_path / "results.csv")]
    with monkeypatch.context() as patch:
        patch.setattr(job_output.JobOutput, "finish", stop)
        assert main(command) == 130

    def refusal() -> str:
        capsys.readouterr()
        assert main([*command, "--resume"]) == 2
        return capsys.readouterr().err

    added = tmp_path / "pictures" / "another.png"
    shutil.copy(tmp_path / "pictures" / "0003.png", added)
    assert "differs in pictures, truth. Expected pictures: 12, " in (told := refusal())
    assert "got pictures: 13, " in told
    added.unlink()
    labels.write_text(labels.read_text() + "\n# another\n")
    assert "differs in labels." in refusal()
    shutil.copy(LABELS, labels)
    before = truth.read_text()
    truth.write_text(before.replace("nine", "three"))
    assert "differs in truth." in refusal()
    truth.write_text(before)
    model.write_bytes(model.read_bytes() + b"\0")
    assert "differs in model." in refusal()
    shutil.copy(MODEL, model)
    assert main([*command, "--resume"]) == 0


def test_a_new_job_does_not_take_the_place_of_one_that_has_stopped(
    place: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "results.csv"
    stopped(capsys, monkeypatch, place, output)
    before = contents(tmp_path)
    code, _, err = run(capsys, place, output)
    assert code == 2
    assert f"a job has stopped here behind {COUNT} pictures" in err
    assert f"--resume, or delete {output}.job" in err
    assert contents(tmp_path) == before
    Path(f"{output}.job").unlink()
    assert run(capsys, place, output)[0] == 1  # some pictures are damaged


def test_finished_results_are_written_over_and_a_job_without_a_journal_begins_anew(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.csv"
    output.write_text("of yesterday")
    run(capsys, place, output)
    whole = output.read_bytes()
    _, _, err = run(capsys, place, output, "--resume")
    assert "nothing to go on with: beginning with the first picture" in err
    assert output.read_bytes() == whole


def test_a_run_that_fails_before_its_first_result_leaves_what_was_there(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.csv"
    output.write_text("of yesterday")
    (tmp_path / "truth.csv").write_text(f"{place / 'pictures' / '0003.png'},thirteen\n")
    code, _, err = run(capsys, place, output, "--truth", str(tmp_path / "truth.csv"))
    assert code == 2
    assert "takes one value" in err or "is no class of the model" in err
    command = ["run", MODEL, "--labels", LABELS, "--truth", str(tmp_path / "truth.csv")]
    assert main([*command, "--output", str(output)]) == 2
    assert "is no class of the model" in capsys.readouterr().err
    assert output.read_text() == "of yesterday"
    assert beside(output) == []


def test_two_processes_do_not_write_one_output(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.csv"
    with job_output.JobOutput(str(output), 5, has_truth=False, facts={}):
        code, _, err = run(capsys, place, output)
    assert code == 2
    assert "another process is writing it" in err


@pytest.mark.parametrize("given", [(), ("pictures",)])
def test_without_an_output_there_is_nothing_to_go_on_with(
    given: tuple[str, ...], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["run", MODEL, *(str(place / name) for name in given), "--resume"])
    assert code == 2
    assert "--output, where their results are kept" in capsys.readouterr().err


def test_a_journal_of_something_else_is_refused(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.csv"
    Path(f"{output}.job").write_text("notes of mine\n")
    for more in ((), ("--resume",)):
        code, _, err = run(capsys, place, output, *more)
        assert code == 2
        assert "not the journal of a job" in err


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def linked(path: Path) -> None:
    begin_journal(path.with_name("other"), {})
    path.symlink_to("other")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", [pipe, endless, linked, Path.mkdir])
def test_a_journal_that_is_not_a_regular_file_is_refused(
    make: Callable[[Path], None], place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "results.csv"
    make(Path(f"{output}.job"))
    for more in ((), ("--resume",)):
        code, _, err = run(capsys, place, output, *more)
        assert code == 2
        assert "the journal of the job is not a regular file" in err


def test_a_line_that_is_torn_ends_a_journal(
    place: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "results.jsonl"
    stopped(capsys, monkeypatch, place, output)
    journal = Path(f"{output}.job")
    lines = journal.read_bytes().splitlines(keepends=True)
    assert find_remnant(journal, output).written == COUNT
    journal.write_bytes(b"".join(lines[:31]) + lines[31][:-1])
    assert find_remnant(journal, output).written == 30
    # A line of which one character is another one, with whole lines behind it.
    journal.write_bytes(b"".join(lines).replace(b'"done":50,', b'"done":51,'))
    assert find_remnant(journal, output).written == 49


@pytest.mark.parametrize("name", ["results.npz.part", "results.npz.part.npz"])
def test_a_file_that_somebody_has_linked_to_beside_the_output_is_left_alone(
    capsys: pytest.CaptureFixture[str], place: Path, tmp_path: Path, name: str
) -> None:
    other = tmp_path / "other"
    other.write_text("of somebody else")
    (tmp_path / name).symlink_to(other)
    assert run(capsys, place, tmp_path / "results.npz")[0] == 1  # for the damaged pictures
    assert other.read_text() == "of somebody else"
    assert (tmp_path / "results.npz").stat().st_size > 0
