"""Base of all rooms, with nothing of networks: a floor below the words of tensors.

In and out: nothing flows through. Lazy exports (`lazy`), resolved types of dataclass fields
(`field_types`), logging (`vlog`), digests of files (`file_digest`), who may own a file
(`file_ownership`), symbolic sizes (`symbolic`), integer arithmetic (`numerics`), child processes
(`processes`). Begin with the module that an import led you to; none knows another room.
"""
