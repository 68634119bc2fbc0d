"""Constants of compiled models: magic bytes, kinds, and sections outside of networks."""

MAGIC = b"armpyNet"

KIND_MODEL = "model"
"""Kind of the files that `armpy.Model.save` writes."""

KIND_KERNELS = "kernels"
"""Kind of the files that `armpy kernels build` writes."""

KIND_SHAPES = "shapes"
"""Kind of the files of the model cache that hold a model's programs for one set of shapes."""

METADATA = "metadata"
"""Name of the section with the original file's metadata."""

PLACEMENT = "placement"
"""Name of the section with the placement report of programs that come without their network."""


def is_prepared(beginning: bytes) -> bool:
    """Return whether a file that begins so is a prepared one, of whatever version."""
    return beginning.startswith(MAGIC)
