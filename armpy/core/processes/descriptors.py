# SPDX-License-Identifier: Apache-2.0
"""Open files that are sent to another process over a socket, and sockets for packets.

Windows sends no files, and macOS has no sockets that keep packets apart: backends are isolated on
neither.
"""

from __future__ import annotations

import select
import socket
import sys
from collections.abc import Callable, Sequence

from armpy.errors import UnimplementedError


def packet_sockets() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets on which each message comes whole with one `read`.

    Raises
    ------
    UnimplementedError
        On Windows.
    OSError
        If there are no descriptors left.
    """
    if sys.platform == "win32":
        raise UnimplementedError("Windows has no sockets that keep packets apart")
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def look_for_input(descriptor: int) -> Callable[[int], object]:
    """A function that waits so many milliseconds for input; true if there is some.

    Raises
    ------
    UnimplementedError
        On Windows, which waits for no descriptors.
    """
    if sys.platform == "win32":
        raise UnimplementedError("Windows waits for no descriptors")
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return poll.poll


def send_with_descriptors(
    connection: socket.socket, message: bytes, descriptors: Sequence[int]
) -> int:
    """Send some bytes of a message with descriptors, which stay the sender's; how many.

    Raises
    ------
    UnimplementedError
        On Windows.
    """
    if sys.platform == "win32":
        raise UnimplementedError("Windows sends no open files to another process")
    return socket.send_fds(connection, [message], descriptors)


def receive_with_descriptors(
    connection: socket.socket,
    size: int,  # most bytes
    most: int,  # descriptors
) -> tuple[bytes, list[int], bool]:
    """Some bytes, descriptors that came with them, and whether none was lost."""
    if sys.platform == "win32":
        return connection.recv(size), [], True
    start, descriptors, flags, _ = socket.recv_fds(connection, size, most)
    return start, descriptors, not flags & socket.MSG_CTRUNC
