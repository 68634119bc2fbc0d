"""From a graph's layers to commands."""
