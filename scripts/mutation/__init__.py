"""Finds out how many single mutations of CpuRef's code the conformance kit catches."""
