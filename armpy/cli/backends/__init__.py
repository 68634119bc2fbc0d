"""The commands about backends: listed, measured, tuned, begun anew."""
