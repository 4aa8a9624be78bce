"""Speeds that must hold, as ratios within one run: machines differ and are noisy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KERNEL = Path(__file__).parent.parent / "benchmarks" / "kernel.py"


def test_kernel_beats_pot_six_times() -> None:
    """Value and gradient at n = 100 000, N = 50, one thread, against POT's value alone.

    Tests beside this one fight for memory and make a run slow, never fast: one of three will do.
    """
    found = []
    while len(found) < 3 and max(found, default=0.0) < 6.0:
        done = subprocess.run(
            [sys.executable, str(KERNEL)], check=True, capture_output=True, text=True, timeout=300
        )
        found.append(float(done.stdout.split()[2]))
    assert max(found) >= 6.0, found
