"""Commands that ``armpy conformance`` has where both packages are installed."""
