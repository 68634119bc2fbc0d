"""CpuRef's workloads, one module per operation, named after it in snake case."""
