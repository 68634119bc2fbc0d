"""Open files and sockets that go to another process with a message.

Notes
-----
POSIX sends them beside the bytes of a message, which says which of them are sockets. On Windows
the sender makes handles for them in the receiver, and the message says their numbers.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from armpy.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Attachments:
    """What came with a message; the receiver's now."""

    files: list[int]
    """Descriptors."""
    sockets: list[socket.socket]

    def close(self) -> None:
        """Close all of them; a copy that was made of one stays open."""
        for descriptor in self.files:
            os.close(descriptor)
        for connection in self.sockets:
            connection.close()


if sys.platform == "win32":
    import _winapi
    import msvcrt

    _SAME_ACCESS = _winapi.DUPLICATE_SAME_ACCESS

    def written_for(
        process: subprocess.Popen[bytes], attached: Sequence[int | socket.socket]
    ) -> list[object]:
        """What a message for a process says of its attachments; they stay the sender's.

        Raises
        ------
        OSError
            If the process has ended.
        """
        mine, other = _winapi.GetCurrentProcess(), int(process._handle)  # type: ignore[attr-defined]

        def write(one: int | socket.socket) -> object:
            if isinstance(one, socket.socket):
                return one.share(process.pid)
            handle = msvcrt.get_osfhandle(one)
            return _winapi.DuplicateHandle(mine, handle, other, 0, False, _SAME_ACCESS)

        return [write(one) for one in attached]

    def send_beside(
        connection: socket.socket, message: bytes, attached: Sequence[int | socket.socket]
    ) -> int:
        """Send nothing, as a message says it all: 0 bytes."""
        return 0

    def receive_beside(
        connection: socket.socket,
        size: int,  # most bytes
    ) -> tuple[bytes, list[int]]:
        """Some bytes, beside which nothing comes."""
        return connection.recv(size), []

    def received(written: Sequence[object], descriptors: Sequence[int]) -> Attachments:
        """The attachments of a message that says this of them.

        There are fewer where this process can have no more descriptors.
        """
        flags = os.O_RDWR | os.O_BINARY | os.O_NOINHERIT
        attachments = Attachments([], [])
        with suppress(OSError):
            for one in written:
                if isinstance(one, bytes):
                    attachments.sockets.append(socket.fromshare(one))
                elif isinstance(one, int):
                    attachments.files.append(msvcrt.open_osfhandle(one, flags))
        return attachments

else:
    _MOST = 2
    """Attachments of a message at most."""

    def written_for(
        process: subprocess.Popen[bytes], attached: Sequence[int | socket.socket]
    ) -> list[object]:
        """What a message for a process says of its attachments; they stay the sender's."""
        return [isinstance(one, socket.socket) for one in attached]

    def send_beside(
        connection: socket.socket, message: bytes, attached: Sequence[int | socket.socket]
    ) -> int:
        """Send some bytes of a message, and its attachments beside them; how many bytes."""
        if not attached:
            return 0
        numbers = [one if isinstance(one, int) else one.fileno() for one in attached]
        return socket.send_fds(connection, [message], numbers)

    def receive_beside(
        connection: socket.socket,
        size: int,  # most bytes
    ) -> tuple[bytes, list[int]]:
        """Some bytes, and the descriptors that came beside them."""
        start, descriptors, _, _ = socket.recv_fds(connection, size, _MOST)
        for descriptor in descriptors:
            # Programs that the worker starts are to have nothing of the application's.
            os.set_inheritable(descriptor, False)
        return start, descriptors

    def received(written: Sequence[object], descriptors: Sequence[int]) -> Attachments:
        """The attachments of a message that says this of them.

        There are fewer where this process can have no more descriptors.
        """
        attachments = Attachments([], [])
        for is_socket, descriptor in zip(written, descriptors, strict=False):
            if is_socket:
                attachments.sockets.append(socket.socket(fileno=descriptor))
            else:
                attachments.files.append(descriptor)
        return attachments
