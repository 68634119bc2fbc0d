"""Magic bytes at the beginning of prepared files, and the kinds that these say they are."""

MAGIC = b"armpyNet"

KIND_MODEL = "model"
"""Kind of the files that `armpy.Model.save` writes."""

KIND_KERNELS = "kernels"
"""Kind of the files that `armpy kernels build` writes."""

KIND_SHAPES = "shapes"
"""Kind of the files of the model cache that hold a model's programs for one set of shapes."""


def is_prepared(beginning: bytes) -> bool:
    """Whether a file that begins so is a prepared one, of whatever version."""
    return beginning.startswith(MAGIC)
