"""Pictures as inputs and results: found, read, labelled, drawn upon."""
