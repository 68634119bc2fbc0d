"""The commands about keys."""

from __future__ import annotations

from pathlib import Path

import pytest

import armpy
from armpy_testing.command_line import Cli, armpy_command
from armpy_testing.digits import MODEL as DIGITS

for library in ("click", "PIL", "cryptography"):
    pytest.importorskip(library)


def has_signed(cli: Cli, private: Path, public: str) -> bool:
    """Whether a file that is compiled with a private key is accepted as the public one's."""
    output = private.with_name("signed.armpy")
    cli.out("compile", DIGITS, "-o", output, "--sign", private)
    with armpy.load(output, trusted_keys=[public], code="signed") as model:
        return model.is_light


def test_keys_are_made_and_shown(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "key.pem"
    printed = cli.out("keys", "generate", str(path)).strip()
    assert has_signed(cli, path, printed)
    assert cli.out("keys", "show", f"{path}.pub").strip() == printed


def test_a_password_is_asked_for_and_not_printed(
    tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return "correct horse"

    monkeypatch.setattr("click.termui.hidden_prompt_func", answer)
    path = tmp_path / "key.pem"
    assert armpy_command(["keys", "generate", str(path), "--password"]) == 0
    out, err = capsys.readouterr()
    assert "correct horse" not in out + err
    assert len(asked) == 2
    assert has_signed(cli, path, out.strip())
    assert len(asked) == 3


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
