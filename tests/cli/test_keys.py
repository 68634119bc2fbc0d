"""The commands about keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy.store.archive.signing import key_text, sign
from armpy_testing.command_line import Cli, armpy_command

for library in ("click", "rich", "PIL", "cryptography"):
    pytest.importorskip(library)


def test_keys_are_made_and_shown(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "key.pem"
    printed = cli.out("keys", "generate", str(path)).strip()
    assert printed == key_text(sign(bytes(64), path).public_key)
    assert cli.out("keys", "show", f"{path}.pub").strip() == printed


def test_a_password_is_asked_for_and_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return "correct horse"

    monkeypatch.setattr("click.termui.hidden_prompt_func", answer)
    path = tmp_path / "key.pem"
    assert armpy_command(["keys", "generate", str(path), "--password"]) == 0
    out, err = capsys.readouterr()
    assert out.strip() == key_text(sign(bytes(64), path, b"correct horse").public_key)
    assert "correct horse" not in out + err
    assert len(asked) == 2


def test_keys_that_are_there_are_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "key.pem"
    path.write_text("mine")
    assert armpy_command(["keys", "generate", str(path)]) != 0
    assert "the key cannot be written: File exists" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_a_private_key_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "key.pem"
    assert armpy_command(["keys", "generate", str(path)]) == 0
    capsys.readouterr()
    assert armpy_command(["keys", "show", str(path)]) != 0
    assert "got a private key" in capsys.readouterr().err
