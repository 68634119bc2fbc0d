"""Backends in processes of their own: the application's side.

An isolated backend implements the contract, as any other; its other half is a worker process
(`core.processes`), in which `execution.isolated_worker` has the backend itself. Begin with
`backend`; `supervisor` keeps the worker running, `workload` executes in it.
"""
