"""Magic bytes at the beginning of prepared files."""

MAGIC = b"armpyNet"


def is_prepared(beginning: bytes) -> bool:
    """Whether a file that begins so is a prepared one, of whatever version."""
    return beginning.startswith(MAGIC)
