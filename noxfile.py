"""What people run by hand, each in an environment of its own: ``nox -l`` lists it.

The sessions run the scripts and commands that ``.ci/run`` runs.
"""

from __future__ import annotations

import nox

nox.options.sessions = ["lint", "tests"]
nox.options.reuse_existing_virtualenvs = True

EXTENSIONS = ["-r", "extensions/requirements.txt"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The test suite; arguments after ``--`` go to pytest."""
    session.install("-e", ".[test]", *EXTENSIONS)
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def full(session: nox.Session) -> None:
    """All tests, which take an hour; arguments after ``--`` go to pytest."""
    session.install("-e", ".[test,bench]", *EXTENSIONS)
    session.run("python", "-m", "pytest", *session.posargs, env={"ARMPY_TEST_EFFORT": "2"})


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, format, types, import order."""
    session.install("-e", ".[dev]", *EXTENSIONS)
    session.run(".ci/lint", session.bin, external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """Whether every page can be followed."""
    session.install("-e", ".[dev]", *EXTENSIONS)
    pages = ["-q", "tests/documents", *session.posargs]
    session.run("python", "-m", "pytest", *pages, env={"ARMPY_TEST_EFFORT": "1"})


@nox.session
def bench(session: nox.Session) -> None:
    """Time a model; arguments after ``--`` go to ``armpy benchmark``."""
    session.install("-e", ".[cli]", "-e", "./extensions/conformance", "-e", "./extensions/tools")
    model = "examples/digits/digits_int8.tflite"
    session.run("armpy", "benchmark", *(session.posargs or [model]))


@nox.session
def wheels(session: nox.Session) -> None:
    """Build the wheels and have each Python that is found run a model from them."""
    session.install("build")
    session.run("python", "lab/try_wheels.py", *session.posargs)


@nox.session
def sources(session: nox.Session) -> None:
    """Have the source archive of each extension and backend pass its own tests alone."""
    session.install("build", "setuptools>=77", "packaging")
    session.run("python", "lab/try_sources.py", *session.posargs)


@nox.session
def release(session: nox.Session) -> None:
    """Build a release and check it; arguments after ``--`` go to lab/release.py."""
    session.install(".[release]")
    session.run("python", "lab/release.py", *session.posargs)
