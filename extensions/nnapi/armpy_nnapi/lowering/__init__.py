"""From a description to a graph: lowering, the dimensions that follow, and what devices support."""
