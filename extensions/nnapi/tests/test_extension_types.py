"""Codes of extensions' types, who agrees about them, and who may use them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from armpy.backend import Extension, ExtensionOperandType
from armpy_nnapi import NnapiError, ResultCode, codes
from armpy_nnapi.description.model_description import ExtensionTypeInformation
from armpy_nnapi.extensions.allow_list import ENVIRONMENT_VARIABLE, AllowList, running_program
from armpy_nnapi.extensions.extensions import TypeManager
from armpy_testing.backends.fake_backends import FakeBackend

from .nnapi_models import bad_data

FIBONACCI = "com.example.fibonacci"
OTHER = "com.example.other"
SCALAR = ExtensionOperandType(0, "INT64", False, 8)
TENSOR = ExtensionOperandType(1, "TENSOR_QUANT64_ASYMM", True, 8)


class Vendor(FakeBackend):
    """Declares extensions."""

    def __init__(self, backend_id: str, *declared: Extension) -> None:
        super().__init__(backend_id)
        self._declared = declared

    @property
    def extensions(self) -> Sequence[Extension]:
        return self._declared


VENDOR = Vendor("Vendor", Extension(FIBONACCI, (SCALAR, TENSOR)))


def test_prefixes_are_handed_out_by_name_in_order_of_first_use() -> None:
    manager = TypeManager([VENDOR])
    assert manager.get_operation_type(OTHER, 7) == 0x10007
    assert manager.get_operand_type(FIBONACCI, 0xFFFF) == 0x2FFFF
    assert manager.get_operand_type(OTHER, 0) == 0x10000
    assert [manager.name_of(code) for code in (0x10005, 0x20000)] == [OTHER, FIBONACCI]
    assert manager.names_of({0x10005, 0x20000, 0x20001}) == {1: OTHER, 2: FIBONACCI}


def test_an_unknown_extension_gets_a_prefix_and_fails_when_it_is_used() -> None:
    manager = TypeManager([VENDOR])
    code = manager.get_operand_type(OTHER, 0)
    with bad_data(rf"no backend has the vendor extension '{OTHER}'.*of Vendor. Install a backend"):
        manager.operand_type_information(code)


def test_there_are_no_more_prefixes_than_fit_into_15_bits() -> None:
    assert codes.MAX_EXTENSION_PREFIX == 0x7FFF
    manager = TypeManager([])
    for number in range(0x7FFF):
        code = manager.get_operand_type(f"com.example.n{number}", 0)
    assert code == 0x7FFF0000
    with bad_data("too many extensions are in use"):
        manager.get_operand_type("com.example.more", 0)
    assert manager.get_operand_type("com.example.n0", 1) == 0x10001


def test_without_a_name_it_is_an_unexpected_null() -> None:
    with pytest.raises(NnapiError, match="the extension's name is None") as caught:
        TypeManager([]).get_operand_type(None, 0)  # type: ignore[arg-type]
    assert caught.value.code is ResultCode.UNEXPECTED_NULL


@pytest.mark.parametrize("number", [-1, 0x10000, None, 0.5])
def test_a_number_has_16_bits(number: object) -> None:
    with bad_data(rf"{FIBONACCI}: .*Expected 0 to 65535; got {number}"):
        TypeManager([VENDOR]).get_operation_type(FIBONACCI, number)  # type: ignore[arg-type]


def test_a_name_is_text() -> None:
    with bad_data(r"the extension's name is not text. Got b'com.example'"):
        TypeManager([VENDOR]).get_operation_type(b"com.example", 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", [0x20000, 0xFFFF, -1])
def test_a_code_that_was_not_handed_out_belongs_to_no_extension(code: int) -> None:
    manager = TypeManager([VENDOR])
    manager.get_operand_type(FIBONACCI, 0)
    with bad_data("the code belongs to no extension"):
        manager.operand_type_information(code)


def test_a_type_that_the_extension_does_not_have_is_refused_with_those_it_has() -> None:
    manager = TypeManager([VENDOR])
    code = manager.get_operand_type(FIBONACCI, 2)
    with bad_data(r"no such operand type. Expected 0 \(INT64\), 1 \(TENSOR_QUANT64_ASYMM\); got 2"):
        manager.operand_type_information(code)


def test_backends_may_declare_the_same_types_in_another_order() -> None:
    second = Vendor("Second", Extension(FIBONACCI, (TENSOR, SCALAR)))
    manager = TypeManager([VENDOR, second])
    assert manager.disabled == {}
    code = manager.get_operand_type(FIBONACCI, 0)
    assert manager.operand_type_information(code) == ExtensionTypeInformation(0, False, 8)


@pytest.mark.parametrize(
    "types",
    [
        (SCALAR,),
        (SCALAR, ExtensionOperandType(1, "TENSOR_QUANT64_ASYMM", True, 4)),
        (ExtensionOperandType(0, "INT64", True, 8), TENSOR),
        (SCALAR, ExtensionOperandType(2, "TENSOR_QUANT64_ASYMM", True, 8)),
    ],
    ids=["fewer", "size", "scalar", "number"],
)
def test_an_extension_about_which_backends_disagree_is_disabled_for_good(
    types: tuple[ExtensionOperandType, ...],
) -> None:
    second = Vendor("Second", Extension(FIBONACCI, types), Extension(OTHER))
    third = Vendor("Third", Extension(FIBONACCI, (SCALAR, TENSOR)))
    manager = TypeManager([VENDOR, second, third])
    assert set(manager.disabled) == {FIBONACCI}
    code = manager.get_operand_type(FIBONACCI, 0)
    expected = r"disabled: Vendor and Second declare other operand types for it\. Remove one of"
    with bad_data(rf"{FIBONACCI}: .*{expected}"):
        manager.operand_type_information(code)
    with bad_data(expected):
        manager.lookup()(FIBONACCI)
    assert manager.lookup()(OTHER).name == OTHER


def test_the_lookup_of_some_backends_has_only_theirs() -> None:
    second = Vendor("Second", Extension(OTHER))
    manager = TypeManager([VENDOR, second])
    assert manager.lookup()(FIBONACCI).operand_types == (SCALAR, TENSOR)
    assert manager.lookup(["Second"])(OTHER).name == OTHER
    with bad_data(rf"no backend has .*'{FIBONACCI}'\. Expected it among the extensions of Second"):
        manager.lookup(["Second"])(FIBONACCI)


def allow_list(folder: Path, text: str) -> AllowList:
    path = folder / "allowed"
    path.write_text(text)
    return AllowList.read(path)


def script(monkeypatch: pytest.MonkeyPatch, path: Path | None) -> None:
    """Let it look as if a script ran."""
    main = ModuleType("__main__")
    if path is not None:
        main.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "__main__", main)


def test_everybody_is_allowed_if_no_list_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    assert AllowList.configured() is None
    assert TypeManager([VENDOR]).is_allowed


def test_a_line_is_a_program_an_application_or_a_comment(tmp_path: Path) -> None:
    allowed_names = allow_list(
        tmp_path, "# who may\n\n/opt/camera#2/run \ncom.foo.bar # the camera\n"
    )
    assert allowed_names.entries == {"/opt/camera#2/run", "com.foo.bar"}


def test_a_byte_order_mark_is_none_of_the_first_entry(tmp_path: Path) -> None:
    (tmp_path / "allowed").write_bytes(b"\xef\xbb\xbfcom.foo.bar\n/opt/run\n")
    allowed_names = AllowList.read(tmp_path / "allowed")
    assert allowed_names.entries == {"com.foo.bar", "/opt/run"}


def test_a_program_is_allowed_by_its_path_and_through_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "camera.py"
    program.touch()
    (tmp_path / "link.py").symlink_to(program)
    script(monkeypatch, tmp_path / "link.py")
    assert running_program() == str(program.resolve())
    for name, allowed in (("camera.py", True), ("link.py", True), ("other.py", False)):
        allowed_names = allow_list(tmp_path, f"{tmp_path / name}\n")
        assert TypeManager([VENDOR], allowed_names).is_allowed is allowed


def test_an_application_is_allowed_by_its_whole_name(tmp_path: Path) -> None:
    allowed_names = allow_list(tmp_path, "com.foo.bar\n")
    assert TypeManager([VENDOR], allowed_names, "com.foo.bar").is_allowed
    for name in ("com.foo", "com.foo.bar.baz", ""):
        assert not TypeManager([VENDOR], allowed_names, name).is_allowed


def test_a_name_is_no_path(tmp_path: Path) -> None:
    allowed_names = allow_list(tmp_path, "/opt/camera\n")
    assert not TypeManager([VENDOR], allowed_names, "/opt/camera").is_allowed


def test_who_is_not_on_the_list_is_refused_by_name_and_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, tmp_path / "app.py")
    manager = TypeManager([VENDOR], allow_list(tmp_path, "com.foo.bar\n"), "com.bar.foo")
    code = manager.get_operand_type(FIBONACCI, 0)
    program, path = tmp_path.resolve() / "app.py", tmp_path / "allowed"
    expected = (
        rf"may not use vendor extensions\. Expected '{program}' or 'com.bar.foo' in '{path}'\. "
        "Add a line with it to the file"
    )
    with bad_data(expected):
        manager.check_allowed()
    with bad_data(expected):
        manager.operand_type_information(code)
    with bad_data(expected):
        manager.lookup()(FIBONACCI)


def test_a_list_that_cannot_be_read_allows_no_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "missing"))
    manager = TypeManager([VENDOR], AllowList.configured(), "com.foo.bar")
    with bad_data(r"'com.foo.bar' in '.*missing', but it cannot be read: .*No such file"):
        manager.check_allowed()


def test_the_option_goes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "missing"))
    (tmp_path / "given").write_text("com.foo.bar")
    allowed_names = AllowList.configured(tmp_path / "given")
    assert allowed_names is not None
    assert allowed_names.allows("/opt/run", "com.foo.bar")
