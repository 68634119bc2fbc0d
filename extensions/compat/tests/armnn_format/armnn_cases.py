"""Arm NN's published cases of its deserialiser, read from their C++ texts.

A fixture's constructor joins literals and its arguments to a graph in text form; derived fixtures
give the arguments; a case runs a fixture's graph on given elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

Elements = Mapping[str, list[float]]

_TOKEN = re.compile(r'R"\((.*?)\)"|"((?:[^"\\]|\\.)*)"|(\w+)', re.S)
_MACRO = re.compile(r"#define\s+(\w+)\((.*?)\)\s*((?:.*?\\\n)*.*?\n)")
_STRUCT = re.compile(r"struct\s+(\w+)\s*:\s*(?:public\s+)?(\w+)")
_CASE = re.compile(r'TEST_CASE_FIXTURE\(\s*(\w+),\s*((?:"\w+"\s*)+)\)')
_BASE = "ParserFlatbuffersSerializeFixture"


@dataclass(frozen=True)
class PublishedCase:
    """One case: a graph and its results for given elements."""

    name: str
    text: str
    inputs: Elements
    outputs: Elements
    """By the names of the file's layers; an empty one is that of a layer without a name."""


@dataclass(frozen=True)
class _Fixture:
    base: str
    parameters: tuple[tuple[str, str | None], ...]
    """With their defaults."""
    arguments: tuple[str, ...]
    """For the base's parameters, as expressions."""
    body: str


def published_cases(path: Path) -> list[PublishedCase]:
    """The cases of one file."""
    text = _without_comments(path.read_text(encoding="utf-8"))
    text = _expanded(text)
    fixtures = {match[1]: _fixture(match, text) for match in _STRUCT.finditer(text)}
    return [_case(match, text, fixtures, path.stem) for match in _CASE.finditer(text)]


def _without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def _expanded(text: str) -> str:
    """The text with its macros applied, whose calls stand on lines of their own."""
    macros = {macro[1]: macro for macro in _MACRO.finditer(text)}
    text = _MACRO.sub("", text)
    for _ in macros:
        for name, macro in macros.items():
            text = re.sub(rf"^{name}\((.*?)\)", partial(_applied, macro), text, flags=re.M)
    return text


def _applied(macro: re.Match[str], call: re.Match[str]) -> str:
    body = macro[3].replace("\\\n", "\n")
    names = [name.strip() for name in macro[2].split(",")]
    for name, argument in zip(names, (word.strip() for word in call[1].split(",")), strict=True):
        body = re.sub(rf"(?<!#)#{name}\b", f'"{argument}"', body)
        body = re.sub(rf"##{name}\b|\b{name}\b", argument, body)
    return re.sub(r'"\s*"', "", body).replace("##", "")


def _block(text: str, at: int, marks: str = "{}") -> tuple[str, int]:
    """What stands between the first opening mark after a place and its closing mark."""
    begin = text.index(marks[0], at)
    depth, place = 0, begin
    for match in re.finditer(r'R"\(.*?\)"|"(?:[^"\\]|\\.)*"|.', text[begin:], re.S):
        place = begin + match.start()
        depth += (match[0] == marks[0]) - (match[0] == marks[1])
        if not depth:
            break
    return text[begin + 1 : place], place + 1


def _fixture(struct: re.Match[str], text: str) -> _Fixture:
    name, base = struct[1], struct[2]
    whole, _ = _block(text, struct.end())
    at = re.search(rf"\b{name}\s*\(", whole)
    assert at, name
    parameters, end = _block(whole, at.start(), "()")
    arguments: tuple[str, ...] = ()
    if base != _BASE:
        inner, end = _block(whole, whole.index(base, end), "()")
        arguments = tuple(_split(inner))
    body, _ = _block(whole, end)
    return _Fixture(base, tuple(_parameter(word) for word in _split(parameters)), arguments, body)


def _parameter(text: str) -> tuple[str, str | None]:
    declared, _, default = text.partition("=")
    words = re.findall(r"\w+", declared)
    return words[-1], default.strip() or None


def _split(text: str) -> Iterator[str]:
    """Items between commas that no brackets or quotes enclose."""
    depth, item = 0, ""
    for match in re.finditer(r'R"\(.*?\)"|"(?:[^"\\]|\\.)*"|.', text, re.S):
        token = match[0]
        depth += (token in "({[<") - (token in ")}]>") if len(token) == 1 else 0
        if token == "," and not depth:
            yield item.strip()
            item = ""
        else:
            item += token
    if item.strip():
        yield item.strip()


def _graph(name: str, arguments: list[str], fixtures: Mapping[str, _Fixture]) -> tuple[str, str]:
    """The text of a fixture's graph, and the body of the constructor that made it."""
    fixture = fixtures[name]
    defaults = [default for _, default in fixture.parameters[len(arguments) :]]
    values = [*arguments, *(_evaluated(text or '""', {}) for text in defaults)]
    known = {
        parameter: value for (parameter, _), value in zip(fixture.parameters, values, strict=True)
    }
    if fixture.base != _BASE:
        inner = [_evaluated(argument, known) for argument in fixture.arguments]
        return _graph(fixture.base, inner, fixtures)
    begin = fixture.body.index("m_JsonString")
    end = re.search(r'"\s*;', fixture.body[begin:])
    assert end, name
    expression = fixture.body[begin + len("m_JsonString") : begin + end.end()]
    return _evaluated(expression, known), fixture.body


def _evaluated(expression: str, known: Mapping[str, str]) -> str:
    """Literals and names joined."""
    return "".join(
        known[name] if name else raw or plain for raw, plain, name in _TOKEN.findall(expression)
    )


def _case(
    match: re.Match[str], text: str, fixtures: Mapping[str, _Fixture], stem: str
) -> PublishedCase:
    graph, constructor = _graph(match[1], [], fixtures)
    body, _ = _block(text, match.end())
    numbers = dict(re.findall(r"const float (\w+)\s*=\s*([^;]+);", body))
    call, _ = _block(body, body.index("RunTest"), "()")
    groups = list(_split(call))[1:]
    single = re.search(r'SetupSingleInputSingleOutput\("(\w+)", "(\w+)"\)', constructor)
    if not re.match(r"\{\s*\{", groups[0]):  # elements alone, of the only input and output
        names = single.groups() if single else ("", "")
        groups = [f'{{{{"{name}", {group}}}}}' for name, group in zip(names, groups, strict=True)]
    maps = [_elements(group, numbers, text) for group in groups]
    inputs = {name: values for named_values in maps[:-1] for name, values in named_values.items()}
    title = "".join(re.findall(r'"(\w+)"', match[2]))
    return PublishedCase(f"{stem}-{title}", graph, inputs, maps[-1])


def _elements(group: str, numbers: Mapping[str, str], text: str) -> dict[str, list[float]]:
    """The elements of each tensor of a group ``{{"name", {1, 2}}, ...}``."""
    elements = {}
    for pair in _split(group.strip()[1:-1]):
        name, values = _split(pair.strip()[1:-1])
        member = re.search(r"m_\w+", values)
        if member:  # of test data that is assigned elsewhere in the file
            assigned = re.search(rf"{member[0]}\s*=\s*(\{{.*?\}})\s*;", text, re.S)
            assert assigned, member[0]
            values = assigned[1]
        items = (_number(item, numbers) for item in _split(values.strip()[1:-1]))
        elements[name.strip('"')] = list(items)
    return elements


def _number(text: str, numbers: Mapping[str, str]) -> float:
    product = 1.0
    for factor in text.split("*"):
        word = numbers.get(factor.strip(), factor.strip())
        product *= float(word.rstrip("fl") if not word.startswith("0x") else int(word, 16))
    return product
