"""The commands about kernel packs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from armpy.store.archive.kernel_packs import VARIABLE, write_pack
from armpy_testing.command_line import armpy_command
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.installed import skip_without_commands_of_backends

for library in ("click", "PIL"):
    pytest.importorskip(library)
skip_without_commands_of_backends()
pytest.importorskip("numba")

MODEL = str(DIGITS)


@pytest.mark.slow
def test_packs_are_built_for_several_targets_and_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = ["host", "neoverse-n1"]
    arguments = [MODEL, "-o", str(tmp_path / "packs"), "--json"]
    for target in targets:
        arguments += ["--target", target]
    assert armpy_command(["kernels", "build", *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["failures"] == {}
    assert [pack["target"] for pack in document["packs"]] == targets
    assert all(pack["kernels"] >= 5 for pack in document["packs"])
    for pack in document["packs"]:
        assert Path(pack["path"]).stat().st_size == pack["size_bytes"]

    monkeypatch.setenv(VARIABLE, str(tmp_path / "packs"))
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    # In a process that has none of its kernels in memory.
    listed = [sys.executable, "-m", "armpy", "kernels", "list", MODEL, "--json"]
    answer = subprocess.run(listed, capture_output=True, text=True, check=True)
    document = json.loads(answer.stdout)
    reasons = {pack["target"]: pack["reason"] for pack in document["packs"]}
    assert reasons["host"] == ""
    assert "aarch64" in reasons["neoverse-n1"]
    kernels = [use for use in document["uses"] if "kernel" in use["what"]]
    assert [use["is_hit"] for use in kernels] == [True]
    assert str(tmp_path / "packs") in kernels[0]["reason"]

    assert armpy_command(["kernels", "list"]) == 0
    printed = capsys.readouterr().out
    assert "NumbaAcc-host.kernels" in printed
    assert "neoverse-n1" not in printed
    assert "packs for other machines (armpy kernels list --all says why)" in printed
    assert armpy_command(["kernels", "list", "--all"]) == 0
    printed = capsys.readouterr().out
    assert "NumbaAcc-neoverse-n1.kernels: not used: it is for aarch64" in printed
    assert "left out" not in printed


def test_where_there_are_none_it_says_how_to_get_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert armpy_command(["kernels", "list"]) == 0
    expected = "there are no kernel packs (ARMPY_KERNELS=off): make one by armpy kernels build"
    assert expected in capsys.readouterr().out


def test_the_packs_that_come_with_the_backend_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    assert armpy_command(["kernels", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["packs"]
    assert {row["target"] for row in rows} >= {"x86-64-v3", "neoverse-n1"}
    assert all(row["is_sound"] and row["kernels"] > 50 for row in rows)


def test_packs_for_other_machines_are_counted_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from armpy_numba_acc.commands.kernels import PackRow, print_packs

    known = ("NumbaAcc", "target", 5, 100)
    rows = [
        PackRow("used.kernels", *known, True, ""),
        PackRow("first.kernels", *known, True, "it is for aarch64"),
        PackRow("second.kernels", *known, True, "it is for aarch64"),
        PackRow("bad.kernels", *known, False, "it is damaged"),
    ]
    print_packs(rows)
    printed = capsys.readouterr().out
    assert "used.kernels" in printed
    assert "bad.kernels: not used: it is damaged" in printed
    assert "first.kernels" not in printed
    assert "left out: 2 packs for other machines (armpy kernels list --all says why)" in printed
    print_packs(rows, shows_all=True)
    assert "second.kernels: not used: it is for aarch64" in capsys.readouterr().out


@pytest.mark.slow
def test_a_damaged_pack_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.kernels").write_bytes(b"armpyNet" + bytes(500))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert armpy_command(["kernels", "list"]) == 1
    assert "bad.kernels: not used" in capsys.readouterr().out


def test_damage_inside_a_pack_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bad.kernels"
    write_pack(path, "NumbaAcc", {}, {"one": b"1"})
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    monkeypatch.setenv(VARIABLE, str(path))
    assert armpy_command(["kernels", "list"]) == 1
    assert "checksum of block 0 is wrong" in capsys.readouterr().out


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armpy_numba_acc.commands.kernels.load_model", None)
    (tmp_path / "file").write_text("")
    assert armpy_command(["kernels", "build", MODEL, "-o", str(tmp_path / "file" / "packs")]) == 2
    assert "packs cannot be written there" in capsys.readouterr().err


@pytest.mark.slow
def test_a_model_that_cannot_be_read_is_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.tflite"
    bad.write_bytes(b"no model")
    packs = tmp_path / "packs"
    assert armpy_command(["kernels", "build", str(bad), MODEL, "-o", str(packs)]) == 1
    out, err = capsys.readouterr()
    assert "bad.tflite is left out" in err
    assert "NumbaAcc-host.kernels" in out


def test_without_anything_compiled_there_is_nothing_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packs = tmp_path / "packs"
    assert armpy_command(["kernels", "build", MODEL, "-o", str(packs), "--backend", "CpuRef"]) == 1
    assert "there is nothing to write" in capsys.readouterr().err
    assert list(packs.iterdir()) == []


def test_a_target_that_does_not_exist_names_those_that_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert armpy_command(["kernels", "build", MODEL, "-o", str(tmp_path), "--target", "znver"]) != 0
    assert "znver4" in capsys.readouterr().err


def test_a_trust_file_that_lists_backends_leaves_armpys_own_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trust = tmp_path / "trust.toml"
    trust.write_text('allow = ["CpuRef"]\nplugins = []\n')
    trust.chmod(0o600)
    monkeypatch.setenv("ARMPY_TRUST_FILE", str(trust))
    assert armpy_command(["kernels", "--help"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Usage: armpy kernels")
    assert "plugin 'NumbaAcc'" not in printed.err
