"""Ports that a server is to listen on."""

from __future__ import annotations

import socket

from armpy.errors import InvalidArgumentError


def check_free(host: str, port: int, option: str) -> None:
    """Check that a server can listen on a port, before it loads models.

    Parameters
    ----------
    option : str
        Command-line option that chooses the port.

    Raises
    ------
    InvalidArgumentError
        If it cannot: another server has the port, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise InvalidArgumentError(
            f"the server cannot listen there: {error.strerror or error}",
            where=f"{option} {port}",
            fix="Stop the server that has the port, or choose another one",
        ) from error
