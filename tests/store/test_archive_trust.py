"""Trust in compiled models with code, from an attacker's view."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import pytest

from armpy.core.file_ownership import steps_to
from armpy.errors import InvalidArgumentError, ParserError, UnimplementedError
from armpy.execution import RuntimeOptions
from armpy.store.archive.container import Container
from armpy.store.archive.signing import generate_keys, key_text, sign
from armpy.store.archive.trust import CodeVerdict, judge
from armpy_testing.installed import without_cryptography
from armpy_testing.systems import NEEDS_ROOT

if TYPE_CHECKING:
    import grp
    import pwd
else:
    grp = pytest.importorskip(
        "grp", reason="this system has no owners and permission bits of files"
    )
    pwd = pytest.importorskip(
        "pwd", reason="this system has no owners and permission bits of files"
    )

STRANGER = 12345
"""The id of a user that does not exist here."""

SIGNED = bytes(range(64))

signing = pytest.mark.skipif(
    find_spec("cryptography") is None,
    reason="cryptography is not installed (armpy[sign])",
)


@dataclass
class File:
    """What is judged of a `Container`."""

    where: str = "model.armpy"
    info: os.stat_result | None = None
    signed: bytes = SIGNED
    key: bytes = bytes(32)
    signature: bytes = bytes(64)
    path: str | None = None


class Signer(NamedTuple):
    """A signer with a pair of keys."""

    key: bytes
    sign: Callable[[bytes], bytes]


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of those who are in every group."""
    members = ["member"]

    def found(gid: int) -> grp.struct_group:
        return grp.struct_group((pwd.getpwuid(os.geteuid()).pw_name, "x", gid, members))

    monkeypatch.setattr(grp, "getgrgid", found)
    return members


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A file in a folder of the user's own."""
    path = tmp_path / "models" / "model.armpy"
    path.parent.mkdir()
    path.write_bytes(b"model")
    path.parent.chmod(0o755)
    path.chmod(0o644)
    return path


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return make_signer(tmp_path / "signer.pem")


@pytest.fixture
def stranger(tmp_path: Path) -> Signer:
    return make_signer(tmp_path / "stranger.pem")


def make_signer(path: Path) -> Signer:
    _, key = generate_keys(path)
    return Signer(key, lambda message: sign(message, path).signature)


def opened(path: Path | str, **fields: object) -> Container:
    """A file as a container has it, with the descriptor's status."""
    handle = os.open(path, os.O_RDONLY)
    try:
        file = File(str(path), os.fstat(handle), path=str(path), **fields)  # type: ignore[arg-type]
        return cast(Container, file)
    finally:
        os.close(handle)


def in_memory(key: bytes = bytes(32), signature: bytes = bytes(64)) -> Container:
    """A file that came as bytes."""
    return cast(Container, File("model", None, SIGNED, key, signature))


def judged(path: Path | str, **options: object) -> CodeVerdict:
    """The verdict on an unsigned file."""
    return judge(opened(path), **options)  # type: ignore[arg-type]


def refusal(path: Path | str) -> str:
    """Why an unsigned file is refused."""
    verdict = judged(path)
    assert not verdict.uses_code
    with pytest.raises(ParserError) as caught:
        verdict.check()
    assert verdict.reason in str(caught.value)
    assert "set the option code to 'never' to take the graph alone" in str(caught.value)
    return verdict.reason


# Places


def test_an_unsigned_file_in_a_place_of_the_users_own_is_used(place: Path) -> None:
    verdict = judged(place)
    assert verdict == CodeVerdict(True, "no other user can write where it lies (it is not signed)")
    verdict.check()


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666, 0o662])
@pytest.mark.usefixtures("group")
def test_a_file_that_others_can_write_is_refused(place: Path, mode: int) -> None:
    place.chmod(mode)
    who = "everybody" if mode & 2 else "its group"
    assert refusal(place) == f"its file {place} can be written by {who}, and it is not signed"
    error = judged(place).error
    assert f"run chmod go-w {place}, have it signed" in str(error)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("above", [0, 1])
@pytest.mark.parametrize(("mode", "who"), [(0o775, "its group"), (0o777, "everybody")])
def test_a_folder_above_that_others_can_write_is_a_reason(
    place: Path, above: int, mode: int, who: str
) -> None:
    folder = place.parents[above]
    folder.chmod(mode)
    try:
        expected = f"its directory {folder} can be written by {who}, and it is not signed"
        assert refusal(place) == expected
        assert "Copy it to a place of your own, have" in str(judged(place).error)
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("mode", [0o1777, 0o2755, 0o4755, 0o6755, 0o700])
def test_folders_in_which_only_an_owner_can_replace_a_file_are_none(place: Path, mode: int) -> None:
    place.parent.chmod(mode)
    assert judged(place).uses_code


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("mode", [0o2775, 0o4777])
def test_other_bits_than_the_sticky_one_spare_nothing(place: Path, mode: int) -> None:
    place.parent.chmod(mode)
    assert "can be written by" in refusal(place)


@pytest.mark.parametrize(
    ("members", "is_exposed"), [([], False), (["<user>"], False), (["<user>", "other"], True)]
)
def test_a_group_of_the_users_own_counts_as_the_user(
    place: Path, group: list[str], members: list[str], is_exposed: bool
) -> None:
    user = pwd.getpwuid(os.geteuid()).pw_name
    group[:] = [user if name == "<user>" else name for name in members]
    for path in (place, place.parent):
        path.chmod(0o775)
    os.chown(place, -1, pwd.getpwuid(os.geteuid()).pw_gid)
    os.chown(place.parent, -1, pwd.getpwuid(os.geteuid()).pw_gid)
    assert judged(place).uses_code != is_exposed
    place.parent.chmod(0o755)
    place.chmod(0o666)
    assert "can be written by everybody" in refusal(place)


@pytest.mark.parametrize("field", ["name", "gid", "unknown"])
def test_a_group_is_the_users_own_by_its_name_and_as_his_first(
    place: Path, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    user = pwd.getpwuid(os.geteuid())

    def found(gid: int) -> grp.struct_group:
        if field == "unknown":
            raise KeyError(gid)
        return grp.struct_group(("users" if field == "name" else user.pw_name, "x", gid, []))

    first = 7654321 if field == "gid" else user.pw_gid
    fields = (user.pw_name, "x", user.pw_uid, first, "", user.pw_dir, user.pw_shell)
    monkeypatch.setattr(grp, "getgrgid", found)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(fields))
    place.chmod(0o664)
    assert f"its file {place} can be written by its group" in refusal(place)


@NEEDS_ROOT
@pytest.mark.parametrize("mode", [0o644, 0o600, 0o444])
def test_a_file_of_another_user_is_refused(place: Path, mode: int) -> None:
    place.chmod(mode)
    os.chown(place, STRANGER, STRANGER)
    expected = f"its file {place} is owned by another user (id 12345), and it is not signed"
    assert refusal(place) == expected


@NEEDS_ROOT
def test_a_file_of_another_user_in_a_sticky_folder_is_refused(place: Path) -> None:
    place.parent.chmod(0o1777)
    os.chown(place, STRANGER, STRANGER)
    assert "is owned by another user" in refusal(place)


@NEEDS_ROOT
@pytest.mark.parametrize("mode", [0o755, 0o1777, 0o500])
def test_a_folder_of_another_user_is_refused(place: Path, mode: int) -> None:
    place.parent.chmod(mode)
    os.chown(place.parent, STRANGER, STRANGER)
    assert f"its directory {place.parent} is owned by another user" in refusal(place)


@NEEDS_ROOT
def test_a_user_takes_files_of_his_own_and_of_root(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    assert judged(place).uses_code
    os.chown(place, STRANGER, STRANGER)
    assert judged(place).uses_code
    os.chown(place, STRANGER + 1, STRANGER + 1)
    assert "is owned by another user (id 12346)" in refusal(place)


def test_what_a_link_in_an_own_place_leads_to_counts(place: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "open"
    elsewhere.mkdir()
    target = elsewhere / "target.armpy"
    target.write_bytes(b"model")
    link = place.parent / "link.armpy"
    link.symlink_to(target)
    assert judged(link).uses_code
    elsewhere.chmod(0o777)
    assert f"its directory {elsewhere} can be written by everybody" in refusal(link)


def test_a_link_in_a_place_that_others_can_write_counts(place: Path, tmp_path: Path) -> None:
    between = tmp_path / "between"
    between.mkdir()
    (between / "middle").symlink_to(place)
    link = tmp_path / "link.armpy"
    link.symlink_to("between/middle")
    assert judged(link).uses_code
    between.chmod(0o777)
    assert f"its directory {between} can be written by everybody" in refusal(link)
    between.chmod(0o1777)  # only the link's owner can put another in its place
    assert judged(link).uses_code


@NEEDS_ROOT
def test_a_link_of_another_user_is_refused(place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sticky"
    folder.mkdir()
    folder.chmod(0o1777)
    link = folder / "link.armpy"
    link.symlink_to(place)
    os.lchown(link, STRANGER, STRANGER)
    assert f"its link {link} is owned by another user" in refusal(link)


def test_a_folder_that_is_a_link_counts(place: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "current").symlink_to(place.parent)
    path = shared / "current" / place.name
    assert judged(path).uses_code
    shared.chmod(0o777)
    assert f"its directory {shared} can be written by everybody" in refusal(path)


def test_two_dots_after_a_link_are_followed_as_the_system_does(place: Path, tmp_path: Path) -> None:
    """``own/link/../model.armpy`` is where the link has led, and not ``own/model.armpy``."""
    exposed = tmp_path / "exposed"
    (exposed / "inner").mkdir(parents=True)
    (exposed / place.name).write_bytes(b"other")
    (place.parent / "link").symlink_to(exposed / "inner")
    exposed.chmod(0o777)
    path = f"{place.parent}/link/../{place.name}"
    assert Path(path).read_bytes() == b"other"
    assert f"its directory {exposed} can be written by everybody" in refusal(path)


def test_a_relative_path_is_followed_from_the_root(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.parent)
    assert judged(place.name).uses_code
    assert judged(f"./../models/{place.name}").uses_code
    place.parent.chmod(0o777)
    assert "can be written by everybody" in refusal(place.name)


def test_hard_links_count_by_the_file_and_the_name_that_was_used(
    place: Path, tmp_path: Path
) -> None:
    exposed = tmp_path / "exposed"
    exposed.mkdir()
    other_name = exposed / "model.armpy"
    other_name.hardlink_to(place)
    exposed.chmod(0o777)
    assert judged(place).uses_code  # the other name gives no right to write
    assert "can be written by everybody" in refusal(other_name)
    other_name.chmod(0o666)
    assert f"its file {place} can be written by everybody" in refusal(place)


@NEEDS_ROOT
def test_another_users_file_is_not_made_own_by_a_name_here(place: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"model")
    os.chown(theirs, STRANGER, STRANGER)
    name = place.parent / "theirs.armpy"
    name.hardlink_to(theirs)
    assert "is owned by another user" in refusal(name)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc here")
def test_a_descriptors_path_is_followed_to_the_file(place: Path, tmp_path: Path) -> None:
    with place.open("rb") as file:
        path = f"/proc/self/fd/{file.fileno()}"
        assert judged(path).uses_code
        assert judged(f"/dev/fd/{file.fileno()}").uses_code
        place.parent.chmod(0o777)
        assert "can be written by everybody" in refusal(path)
        place.parent.chmod(0o755)
        place.rename(tmp_path / "moved")
        assert judged(path).uses_code
        (tmp_path / "moved").unlink()
        assert "the way to it cannot be followed: No such file" in refusal(path)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="there are no such files here")
def test_a_file_in_memory_lies_nowhere() -> None:
    handle = os.memfd_create("model")
    try:
        assert "the way to it cannot be followed" in refusal(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


def test_a_file_that_has_taken_anothers_place_is_refused(place: Path) -> None:
    before = opened(place)
    other = place.with_name("other")
    other.write_bytes(b"other")
    other.replace(place)
    verdict = judge(before)
    assert not verdict.uses_code
    assert "another file has taken its place since it was opened" in verdict.reason


def test_a_file_that_others_could_write_when_it_was_opened_is_refused(place: Path) -> None:
    place.chmod(0o666)
    before = opened(place)
    place.chmod(0o644)
    verdict = judge(before)
    assert f"its file {place} can be written by everybody" in verdict.reason
    assert not verdict.uses_code


def test_bytes_in_memory_are_refused_without_a_signature() -> None:
    verdict = judge(in_memory())
    assert not verdict.uses_code
    with pytest.raises(ParserError, match="it comes from memory, so its writer is unknown"):
        verdict.check()


def test_links_in_a_circle_are_a_reason(place: Path, tmp_path: Path) -> None:
    file = opened(place)
    file.path = str(tmp_path / "a")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "Too many levels of symbolic links" in judge(file).reason


def test_every_folder_is_looked_at_from_the_root_on(place: Path) -> None:
    assert [path for path, _ in steps_to(str(place))] == [
        *map(str, reversed(place.parents)),
        str(place),
    ]


# Signatures


@signing
def test_a_signature_by_a_trusted_key_is_enough(
    place: Path, signer: Signer, stranger: Signer
) -> None:
    place.chmod(0o666)
    fields = {"key": signer.key, "signature": signer.sign(SIGNED)}
    for file in (opened(place, **fields), in_memory(**fields)):
        keys = (stranger.key, signer.key)
        verdict = judge(file, keys)
        assert verdict == CodeVerdict(
            True, f"it is signed by the trusted key {key_text(signer.key)}"
        )
        assert judge(file, keys, "signed").uses_code


@signing
@pytest.mark.parametrize("code", ["trusted", "signed"])
def test_the_signature_of_another_file_is_refused_even_in_an_own_place(
    place: Path, signer: Signer, code: str
) -> None:
    other = signer.sign(bytes(64))
    verdict = judge(opened(place, key=signer.key, signature=other), (signer.key,), code)
    assert not verdict.uses_code
    with pytest.raises(ParserError) as caught:
        verdict.check()
    assert caught.value.where == str(place)
    assert caught.value.expected == f"a signature by the trusted key {key_text(signer.key)}"
    assert "its signature is wrong: the file was changed after signing" in str(caught.value)
    assert "Get the file again from its signer" in caught.value.fix


@signing
def test_a_trusted_key_put_in_the_place_of_the_signers_is_refused(
    place: Path, signer: Signer, stranger: Signer
) -> None:
    file = opened(place, key=signer.key, signature=stranger.sign(SIGNED))
    assert "its signature is wrong" in judge(file, (signer.key,)).reason


@signing
def test_a_signers_key_without_a_signature_is_refused(place: Path, signer: Signer) -> None:
    verdict = judge(opened(place, key=signer.key), (signer.key,))
    assert "its signature is wrong" in verdict.reason
    assert not verdict.uses_code


@signing
def test_a_signature_by_an_unknown_key_counts_as_none(
    place: Path, signer: Signer, stranger: Signer
) -> None:
    fields = {"key": stranger.key, "signature": stranger.sign(SIGNED)}
    text = key_text(stranger.key)
    unknown = f"it is signed by {text}, which is not one of the trusted keys"
    verdict = judge(opened(place, **fields), (signer.key,))
    assert verdict == CodeVerdict(True, f"no other user can write where it lies ({unknown})")
    elsewhere = judge(in_memory(**fields), (signer.key,))
    assert not elsewhere.uses_code
    assert elsewhere.reason.endswith(unknown)


def test_without_trusted_keys_a_signature_counts_as_none(place: Path) -> None:
    fields = {"key": b"\1" * 32, "signature": b"\2" * 64}
    assert "but no keys are trusted" in judge(opened(place, **fields)).reason
    assert not judge(in_memory(**fields)).uses_code


def test_an_unsigned_file_in_an_own_place_is_used_where_keys_are_trusted(place: Path) -> None:
    assert judged(place, trusted_keys=(b"\1" * 32,)).uses_code


def test_signed_alone_takes_no_unsigned_file_from_an_own_place(place: Path) -> None:
    verdict = judged(place, trusted_keys=(b"\1" * 32,), code="signed")
    assert verdict.reason == "it is not signed"
    with pytest.raises(
        ParserError, match="one of the trusted keys, as the option code is 'signed'"
    ):
        verdict.check()


def test_never_takes_the_graph_alone_and_asks_nothing_else(place: Path, tmp_path: Path) -> None:
    place.chmod(0o666)
    wrong = {"key": b"\1" * 32, "signature": b"\2" * 64}
    for file in (opened(place, **wrong), in_memory(**wrong)):
        verdict = judge(file, (b"\1" * 32,), "never")
        assert verdict == CodeVerdict(False, "code is not wanted: the option code is 'never'")
        verdict.check()


@pytest.mark.parametrize("code", ["any", "", "TRUSTED", None])
def test_there_are_no_other_choices(code: object) -> None:
    with pytest.raises(InvalidArgumentError, match="Expected 'trusted', 'signed' or 'never'; got"):
        RuntimeOptions(code=code)  # type: ignore[arg-type]


def test_a_trusted_signature_is_not_taken_for_granted_without_the_package(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_cryptography(monkeypatch)
    file = opened(place, key=b"\1" * 32, signature=b"\2" * 64)
    with pytest.raises(UnimplementedError, match=r"pip install '\S*\[sign\]'"):
        judge(file, (b"\1" * 32,))
    assert judge(file).uses_code  # which key it is does not count here


@pytest.mark.slow
def test_files_without_a_trusted_signature_are_judged_without_the_package(place: Path) -> None:
    code = f"""
import os, sys, types
import numpy
before = set(sys.modules)
from armpy.store.archive.trust import judge
info = os.stat({str(place)!r})
file = types.SimpleNamespace(
    where="model", info=info, signed=bytes(64), key=b"\\1" * 32, signature=b"\\2" * 64,
    path={str(place)!r},
)
assert judge(file, (b"\\3" * 32,)).uses_code
assert not {{"cryptography", "dataclasses"}} & (set(sys.modules) - before)
print(*sorted(name for name in sys.modules if name.startswith("armpy")))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [
        "armpy",
        "armpy.core",
        "armpy.core.arguments",
        "armpy.core.file_digest",
        "armpy.core.file_ownership",
        "armpy.core.installation",
        "armpy.core.lazy",
        "armpy.core.shell",
        "armpy.errors",
        "armpy.store",
        "armpy.store.archive",
        "armpy.store.archive.container",
        "armpy.store.archive.magic",
        "armpy.store.archive.signing",
        "armpy.store.archive.trust",
        "armpy.store.owned_files",
    ]
