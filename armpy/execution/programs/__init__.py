"""The steps of an execution, for shapes known beforehand, known in stages, or known only then."""
