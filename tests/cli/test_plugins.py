"""Plugins with hooks on the command line: formats, sections, commands, faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from armpy.plugins import install_line
from armpy.plugins.extension_tables import COMMANDS
from armpy_testing.backends.fake_distributions import FakeSite, fake_site
from armpy_testing.command_line import Cli
from armpy_testing.installed import NEEDS_KIT
from tests.support.toy_format import toy_plugin

for library in ("click", "PIL"):
    pytest.importorskip(library)

MORE = """
import click
from armpy.backend import BackendOption
from armpy.plugins.hooks import ModelSignature, ReportSection
print("a plugin that talks while it is imported")


def describe(file):
    return {"length": len(file.data)}


@hookimpl(specname="armpy_register_front_end")
def other():
    print("and in its hooks")
    options = (BackendOption("depth", 2, "How deep.", minimum=1),)
    signatures = lambda file: [ModelSignature("main", ("x",), ("y",))]

    def parse_other(file, settings):
        if settings.options["depth"] != 2:
            raise ParserError(f"depth {settings.options['depth']}")
        return parse(file, settings)

    return FrontEnd("other", "other nets", parse_other, suffixes=(".other",), options=options,
                    describe=describe, signatures=signatures)


@hookimpl
def armpy_report_sections(graph, path, layers_by_backend):
    rows = [(layer.name, sum(layers_by_backend.values())) for layer in graph.layers]
    return ReportSection("Toy layers", ["layer", "all>"], rows)


@click.command("toy-count", short_help="Count what is in a file.")
@click.argument("file", type=click.File("rb"))
@click.option("--how", default="well")
def count(file, how):
    if how == "raise":
        raise ValueError("oops")
    if how == "lack":
        raise ModuleNotFoundError("No module named 'armpy_nnapi'", name="armpy_nnapi.model")
    if how == "lose":
        open("/nowhere/at/all")
    if how == "exit":
        raise SystemExit(7)
    if how == "say":
        raise SystemExit("there is no more paper")
    if how == "known":
        raise ParserError("this is known", where="toy")
    click.echo(f"{len(file.read().split())} words, counted {how}")


@hookimpl
def armpy_add_cli_commands():
    return [count, click.Command("run"), click.Command("Bad Name"), 3]
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    with fake_site(tmp_path) as fake:
        yield fake


@pytest.fixture
def toy(site: FakeSite, tmp_path: Path) -> Path:
    """A model of a plugin's format, with the plugin installed."""
    site.install_plugin("toy", toy_plugin() + MORE)
    path = tmp_path / "small.toy"
    path.write_bytes(b"TOY1 relu relu")
    return path


@NEEDS_KIT
def test_a_plugins_format_is_run_inspected_and_compared(toy: Path, cli: Cli) -> None:
    assert cli.document("run", toy)["outputs"][0]["name"] == "y"
    code, out, _ = cli("inspect", toy)
    assert code == 0
    assert out.startswith("format: toy nets (front-end toy of toy-plugin 1.0), 14 B\n")
    assert "Toy layers (toy)" in out
    code, out, _ = cli("diff", toy, "--backend", "NumbaAcc")
    assert (code, "no difference" in out) == (0, True)


def test_inspect_shows_lines_of_the_front_end_and_of_plugins(
    toy: Path, tmp_path: Path, cli: Cli
) -> None:
    path = tmp_path / "small.other"
    path.write_bytes(b"OTHR relu")
    report = cli.document("inspect", path)
    assert report["format"] == {
        "front_end": "other",
        "title": "other nets",
        "plugin": "toy-plugin 1.0",
        "facts": {"length": "9"},
    }
    assert report["sections"] == [
        {
            "plugin": "toy",
            "title": "Toy layers",
            "columns": ["layer", "all>"],
            "rows": [["Activation_0", "1"]],
        }
    ]
    assert report["signatures"] == [{"name": "main", "inputs": ["x"], "outputs": ["y"]}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--front-end-option", "depth=3"], "front-end 'other' of toy-plugin 1.0: depth 3"),
        (
            ["--front-end-option", "depth=0"],
            "'depth' cannot have this value. Expected a whole number of at least",
        ),
        (["--front-end-option", "dept=3"], "the front-end has no option 'dept'"),
        (["--front-end-option", "depth"], "this is not an option of a front-end"),
        (["--front-end-option", "depth=2", "--front-end-option", "depth=2"], "is given twice"),
        (["--front-end", "toys"], "there is no front-end 'toys'. Expected one of tflite, "),
        (["--front-end", "tflite"], "not a .tflite file"),
        (["--signature", "other"], "the model has no such signature. Expected 'main'; got 'other'"),
    ],
)
def test_a_front_end_and_its_options_are_chosen_on_the_command_line(
    toy: Path,
    tmp_path: Path,
    options: list[str],
    message: str,
    cli: Cli,
) -> None:
    path = tmp_path / "small.other"
    path.write_bytes(b"OTHR relu")
    assert cli("run", path, "--front-end-option", "depth=2", "--signature", "main")[0] == 0
    code, out, err = cli("run", path, *options)
    assert (code != 0, out) == (True, "")
    assert message in err


def test_a_plugins_command_stands_beside_armpys_own(toy: Path, cli: Cli) -> None:
    _, out, err = cli("--help")
    assert "toy-count" in out
    assert "Count what is in a file." in out
    for reason in (
        "the command name 'run' is taken",
        "its command is called 'Bad Name'. Expected lower case with hyphens",
        "it returned 3. Expected Command",
    ):
        assert reason in err
    assert cli("toy-count", toy)[:2] == (0, "3 words, counted well\n")


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("raise", 1, "plugin 'toy' from toy-plugin 1.0: the command raised ValueError('oops')."),
        (
            "lose",
            1,
            "plugin 'toy' from toy-plugin 1.0: the command raised "
            "FileNotFoundError(2, 'No such file or directory', '/nowhere/at/all').",
        ),
        (
            "lack",
            1,
            "plugin 'toy' from toy-plugin 1.0: the command raised ModuleNotFoundError("
            f"\"No module named 'armpy_nnapi'\"). Run: {install_line('armpy-nnapi')}\n",
        ),
        ("exit", 7, ""),
        ("say", 1, ""),
        ("known", 1, "toy: this is known."),
    ],
)
def test_what_a_plugins_command_raises_is_one_line_that_names_it(
    toy: Path, how: str, code: int, message: str, cli: Cli
) -> None:
    status, out, err = cli("toy-count", toy, "--how", how)
    assert (status, out) == (code, "")
    assert (f"armpy: error: {message}" if message else "") in err
    assert ("there is no more paper\n" in err) == (how == "say")
    assert "Traceback" not in err


def test_a_wrong_option_of_a_plugins_command_is_a_usage_error(toy: Path, cli: Cli) -> None:
    assert "No such option" in cli.err("toy-count", toy, "--hwo", "x")
    assert cli("toy-count", toy, "--how", "a", "--how", "b")[0] == 2
    assert cli("toy-nothing")[0] == 2


GROUP = """
import click
from armpy.plugins.hooks import hookimpl


@click.group("toys", short_help="Toys.")
def group():
    pass


@group.command("count")
def count():
    click.echo("counted")


@hookimpl
def armpy_add_cli_commands():
    return group
"""

JOINS = """
import click
from armpy.plugins.hooks import hookimpl


@click.command("toys sort", short_help="Sort toys.")
@click.option("--how", default="by size")
def sort(how):
    click.echo(f"sorted {how}")


@hookimpl
def armpy_add_cli_commands():
    return [sort, click.Command("toys count"), click.Command("balls throw")]
"""


@pytest.mark.parametrize("first", ["joins", "zgroup"])
def test_a_command_named_after_a_group_joins_another_plugins_group(
    site: FakeSite, cli: Cli, first: str
) -> None:
    for name in sorted(("joins", "zgroup"), key=lambda name: name != first):
        site.install_plugin(name, JOINS if name == "joins" else GROUP)
    assert cli("toys", "count")[:2] == (0, "counted\n")
    assert cli("toys", "sort", "--how", "by age")[:2] == (0, "sorted by age\n")
    assert "Sort toys." in cli("toys", "--help")[1]
    _, out, err = cli("--help")
    assert "sort" not in out
    assert "the command name 'toys count' is taken" in err
    assert "no plugin has a group 'balls' for its command 'balls throw'" in err


SPOILS_HELP = """
import click
from armpy.plugins.hooks import hookimpl


class Second(click.Command):
    asked = 0

    def get_short_help_str(self, limit=45):
        if limit != 45:
            raise SystemExit(5)
        return "fine"


class Hidden(click.Command):
    hidden = property(lambda self: 1 // 0, lambda self, value: None)


@hookimpl
def armpy_add_cli_commands():
    return [Second("second"), Hidden("hidden"), click.Command("third", short_help="All well.")]
"""


def test_a_command_that_cannot_be_listed_spoils_no_help(site: FakeSite, cli: Cli) -> None:
    site.install_plugin("bad", SPOILS_HELP)
    code, out, err = cli("--help")
    assert (code, "inspect" in out, "All well." in out) == (0, True, True)
    assert "plugin 'bad' from bad-plugin 1.0 is left out: SystemExit: 5" in err
    assert "plugin 'bad' from bad-plugin 1.0 is left out: ZeroDivisionError" in err


def test_what_is_said_of_a_plugin_holds_no_control_characters(site: FakeSite, cli: Cli) -> None:
    site.install(
        "odd-vendor",
        {"\x1b[2Jred": "odd_vendor"},
        source="raise ValueError('\\x1b[31m')",
        group="armpy.plugins",
    )
    _, _, err = cli("--help")
    assert r"plugin '\x1b[2Jred' from odd-vendor 1.0 is left out: ValueError: \x1b[31m" in err
    assert "\x1b" not in err


SPOILS_REPORTS = """
from armpy.plugins.hooks import ModelSignature, ReportSection, hookimpl


def damaged():
    section = ReportSection("damaged", ["a"], [])
    object.__setattr__(section, "columns", 3)
    return section


@hookimpl
def armpy_report_sections(graph):
    odd = ReportSection("Odd", ["one>"], [["cell"]])
    return [damaged(), odd]
"""

SCRIBBLES = """
from armpy.plugins.hooks import hookimpl


@hookimpl
def armpy_report_sections(layers_by_backend):
    layers_by_backend["Evil"] = 99
"""


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_section_that_is_damaged_spoils_no_report(
    site: FakeSite, toy: Path, flags: tuple[str, ...], cli: Cli
) -> None:
    site.install_plugin("spoils", SPOILS_REPORTS)
    site.install_plugin("zz", SCRIBBLES)
    code, out, err = cli("inspect", toy, *flags)
    assert (code, "Toy layers" in out, "Odd" in out, "Evil" in out) == (0, True, True, False)
    assert "plugin 'spoils' from spoils-plugin 1.0 is left out: TypeError" in err
    assert "plugin 'zz' from zz-plugin 1.0 is left out: TypeError" in err


@pytest.mark.parametrize("name", ["report", "conformance fuzz"])
def test_a_command_of_a_missing_extension_names_the_package_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setattr("armpy.cli.command_group._plugin_commands", lambda own_names, with_own: {})
    err = cli.err(name, "--help")
    assert f"the command '{name}' is missing" in err
    assert f"Run: {install_line(COMMANDS[name])}" in " ".join(err.split())


def test_a_command_of_a_backend_that_cannot_be_loaded_says_so(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armpy.cli.command_group._plugin_commands", lambda own_names, with_own: {})
    err = cli.err("tune", "--help")
    assert "the command 'tune' is missing: its backend cannot be loaded" in err
