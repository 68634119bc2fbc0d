"""The forge's files: what runs there, with which rights, and that they agree with the tree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def jobs(workflow: str) -> dict[str, str]:
    """The text of each job of a workflow."""
    text = (ROOT / ".github" / "workflows" / f"{workflow}.yml").read_text("utf-8")
    parts = re.split(r"^  ([\w-]+):\n", text.partition("\njobs:\n")[2], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rights(job: str) -> set[str]:
    """The permissions that a job has beyond its workflow's."""
    block = re.search(r"^    permissions:\n((?:      .*\n)+)", job, re.MULTILINE)
    return set(re.findall(r"([\w-]+: \w+)", block[1])) if block else set()


def test_each_action_is_pinned_by_digest_beside_its_version() -> None:
    digests: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for use in re.findall(r"uses:(.*)", path.read_text("utf-8")):
            pinned = re.fullmatch(r" ([\w.-]+/[\w./-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)", use)
            assert pinned, f"{path.name}:{use}"
            digests.setdefault(pinned[1], set()).add(pinned[2])
    assert {action for action, pins in digests.items() if len(pins) > 1} == set()
    assert "package-ecosystem: github-actions" in (ROOT / ".github/dependabot.yml").read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_few_rights_and_no_secrets(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.search(r"^permissions: \{\}$|^permissions:\n  contents: read\n\n", text, re.MULTILINE)
    assert "secrets." not in text
    assert "pull_request_target" not in text
    for name, job in jobs(path.stem).items():
        assert "timeout-minutes: " in job, name
        assert job.count("actions/checkout@") == job.count("persist-credentials: false"), name


def test_a_release_publishes_the_files_that_were_built_once() -> None:
    release = jobs("release")
    assert [*release] == ["build", "attest", "publish"]
    assert [name for name, job in release.items() if " run: " in job] == ["build"]
    assert "lab/release.py" in release["build"]
    assert rights(release["build"]) == {"contents: read"}
    assert rights(release["attest"]) == {"attestations: write", "id-token: write"}
    assert rights(release["publish"]) == {"id-token: write"}
    for job in (release["attest"], release["publish"]):
        assert re.search(r"download-artifact@.*\n +with:\n +name: distributions\n", job)
        assert "    if: github.event_name == 'push'\n" in job
    assert "    needs: [build, attest]\n" in release["publish"]
    assert "    environment: pypi\n" in release["publish"]
    assert "password" not in release["publish"]


def test_systems_that_must_pass_are_those_on_which_tests_are_said_to_run() -> None:
    page = (ROOT / "docs" / "reference" / "support.md").read_text("utf-8")
    rows = re.findall(r"^\| (3\.\d+) \| (.*) \|$", page, re.MULTILINE)
    tested = {
        (python, system)
        for python, cells in rows
        for system, cell in zip(
            ("ubuntu-latest", "ubuntu-24.04-arm", "macos-latest", "windows-latest"),
            cells.split(" | "),
            strict=True,
        )
        if cell == "tests run"
    }
    checks = jobs("checks")
    pythons = re.findall(
        r'"(3\.\d+)"', checks["tests"].partition("matrix:")[2].partition("steps:")[0]
    )
    assert "    runs-on: ubuntu-latest\n" in checks["tests"]
    assert "continue-on-error" not in checks["tests"]
    assert tested == {(python, "ubuntu-latest") for python in pythons}
    others = checks["other-systems"]
    assert "    continue-on-error: true\n" in others
    systems = re.findall(r"- system: ([\w.-]+)", others)
    assert systems == ["ubuntu-24.04-arm", "macos-latest", "windows-latest"]
    for folder in re.findall(
        r"[\w/]+/[\w/]+", others.partition("windows-latest")[2].split("\n")[1]
    ):
        assert (ROOT / folder).is_dir(), folder


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_name_extras_and_programs_of_the_tree(path: Path) -> None:
    text = path.read_text("utf-8")
    for extras in re.findall(r"\.\[([\w,]+)\]", text):
        assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    programs = re.findall(r"(?<=[ \"])((?:lab|extensions|\.ci)/[\w./-]+)", text)
    assert {name for name in programs if not (ROOT / name).is_file()} == set()
