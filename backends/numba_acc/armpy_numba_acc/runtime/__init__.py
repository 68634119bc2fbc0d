"""What runs programs: loaded kernels, threads, workloads."""
