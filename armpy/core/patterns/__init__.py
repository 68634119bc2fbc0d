"""Regular expressions in RE2's syntax, which match in time that grows with the text alone."""
