"""What answers in workers, for tests: it does what requests say."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from armpy.errors import InvalidArgumentError, MemoryLimitError, UnsupportedOperatorError
from armpy_testing.descendants import start_session


class Obedient:
    """Follows its requests."""

    def answer(self, request: Any, attachments: object) -> Mapping[str, object]:
        method, *arguments = request
        answer: Mapping[str, object] = getattr(self, method)(*arguments)
        return answer

    def echo(self, value: object) -> Mapping[str, object]:
        return {"value": value}

    def say(self, text: str, times: int) -> Mapping[str, object]:
        for _ in range(times):
            print(text)
        sys.stdout.flush()
        return {}

    def sleep(self, duration_s: float) -> Mapping[str, object]:
        time.sleep(duration_s)
        return {}

    def drip(self, interval_s: float) -> Mapping[str, object]:
        """Write an answer byte by byte, without an end."""
        answer = struct.pack("<I", 1000) + b" " * 1000
        for number in range(len(answer)):
            self.write_raw(answer[number : number + 1])
            time.sleep(interval_s)
        return {}

    def start_child(self) -> Mapping[str, object]:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        return {"pid": child.pid}

    def start_session(self) -> Mapping[str, object]:
        """Start a process in a session of its own, whose parent ends."""
        return {"pid": start_session()}

    def take_descriptors(self) -> Mapping[str, object]:
        with suppress(OSError):
            while True:
                os.dup(0)
        return {}

    def answer_error(self, fields: object) -> Mapping[str, object]:
        """Say that something has failed, in any words."""
        return {"error": fields}

    def leave(self, code: int) -> Mapping[str, object]:
        os._exit(code)

    def leave_late(self, code: int, duration_s: float) -> Mapping[str, object]:
        """End some time after the connections are closed, as an interpreter that breaks does."""
        os.closerange(3, 1000)
        time.sleep(duration_s)
        os._exit(code)

    def raise_error(self, kind: str) -> Mapping[str, object]:
        if kind == "limit":
            raise MemoryLimitError("too much", where="here", expected="1", actual="2", fix="Less.")
        if kind == "argument":
            raise InvalidArgumentError("no", where="there")
        if kind == "operators":
            raise UnsupportedOperatorError("unknown")
        raise KeyError(kind)

    def run_out_of_memory(self) -> Mapping[str, object]:
        try:
            raise MemoryError
        except MemoryError as error:
            raise InvalidArgumentError("wrapped") from error

    def write_raw(self, data: bytes) -> Mapping[str, object]:
        """Write to every socket, as a worker that has lost its senses might."""
        for number in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{number}").startswith("socket"):
                    os.write(int(number), data)
            except OSError:
                continue
        return {}

    def environment(self) -> Mapping[str, object]:
        return {"stdin": sys.stdin.read(), "path": sys.path, "flags": sys.flags.isolated}
