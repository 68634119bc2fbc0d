"""Pictures for models: found in folders, read ahead, judged against labels, drawn upon."""
