"""The worker's side: answers requests until there are no more."""

from __future__ import annotations

import importlib
import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from armpy.core.processes.attachments import Attachments
from armpy.core.processes.confinement import confine, in_force
from armpy.core.processes.fitness import check_descriptors
from armpy.core.processes.protocol import error_as_fields, receive_request, send_answer


class Handler(Protocol):
    """Handler of requests in a worker."""

    def answer(
        self,
        request: Any,  # as it was given to `Worker.request`
        attachments: Attachments,  # closed afterwards
    ) -> Mapping[str, object]:
        """Carry out the request.

        The answer has the form of JSON.
        """


def main(settings: Mapping[str, Any]) -> None:  # pragma: no cover - runs in the worker
    """Serve the application until it closes the connection, or ends.

    Parameters
    ----------
    settings : mapping
        ``connection``, descriptor of a socket; ``handler``, ``"module:function"`` that makes a
        `Handler`; ``memory_bytes``, ``confined`` and ``writable``, as `confine` takes them;
        ``ends_in_order``.
    """
    confine(
        memory_bytes=settings["memory_bytes"],
        rights=settings["confined"],
        writable=settings["writable"],
    )
    # Rights are gone before any thread is there, as NumPy's would be.
    module, _, name = settings["handler"].partition(":")
    make: Callable[[], Handler] = getattr(importlib.import_module(module), name)
    serve(settings["connection"], make())
    if not settings["ends_in_order"]:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # code of the backend may have closed or replaced it
                stream.flush()
        os._exit(0)  # whatever threads and exit handlers are left


def serve(
    connection: int,  # descriptor of the application's socket
    handler: Handler,
) -> None:
    """Answer requests until there are no more."""
    owner = os.getpid()
    with socket.socket(fileno=connection) as stream:
        while True:
            try:
                request = receive_request(stream)
            except EOFError:
                return
            try:
                check_descriptors(request.are_whole)
                answer = handler.answer(request.content, request.attachments)
            except BaseException as error:  # noqa: BLE001 - worker boundary: it is the answer
                answer = {"error": error_as_fields(error)}
            finally:
                request.attachments.close()
            if os.getpid() != owner:
                os._exit(0)  # a child that was forked meanwhile, and the worker answers itself
            send_answer(stream, answer)
            del request


class Checker:
    """Reports what is in force in the worker."""

    def answer(self, request: object, attachments: Attachments) -> Mapping[str, object]:
        """Return its limits and the rights that it has given up, for any request."""
        return in_force()
