"""Execution of programs: loaded kernels, threads, workloads."""
