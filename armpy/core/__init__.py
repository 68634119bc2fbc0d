"""Base of all packages, with nothing of networks.

In and out: nothing flows through. Lazy exports (`lazy`), resolved types of dataclass fields
(`field_types`), logging (`vlog`), digests of files (`file_digest`), who may own a file
(`file_ownership`), symbolic sizes (`symbolic`), integer arithmetic (`numerics`), child processes
(`processes`). Begin with the module that an import led you to; none imports another package.
"""
