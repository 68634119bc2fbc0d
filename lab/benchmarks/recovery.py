"""How soon an isolated backend is there again after a fault.

``python -m lab.benchmarks.recovery [--faults N]`` injects faults, and prints how long after each
the next right result was there, and how many results were wrong.
"""

from __future__ import annotations

import argparse
import logging
import statistics
from collections import defaultdict

from armpy_testing.backends.injections import inject
from lab.benchmarks.common import description


def main() -> None:
    """Inject faults, and print a line for each kind."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("--faults", type=int, default=1000, help="how many to inject")
    logging.getLogger("armpy").setLevel(logging.ERROR)
    outcome = inject(parser.parse_args().faults)
    by_kind = defaultdict(list)
    for kind, duration_s in outcome.recovery_s:
        by_kind[kind].append(duration_s * 1e3)
        by_kind["all"].append(duration_s * 1e3)
    for kind, delays in sorted(by_kind.items()):
        delays.sort()
        p99 = delays[min(int(len(delays) * 0.99), len(delays) - 1)]
        print(
            f"{kind}: {len(delays)} faults, the next result after {delays[0]:.0f} to "
            f"{delays[-1]:.0f} ms, median {statistics.median(delays):.0f}, p99 {p99:.0f}"
        )
    print(f"errors {dict(outcome.errors)}, wrong {outcome.wrong}, leaked {outcome.left}")


if __name__ == "__main__":
    main()
