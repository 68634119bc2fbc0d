"""What is done around the steps of an execution: variables, profiles, logs, stops, second tries."""
