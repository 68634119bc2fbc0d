"""Everything that armpy keeps on disk: small entries, compiled parts, and compiled models.

In come bytes and their sources; out come the same bytes, or nothing where they are not
those any more. Begin with `entries`, which checks owner, length and digest of all that is small;
`archive` is the container of compiled models, `settings` says where things lie.
"""
