"""What a side prints when it is done."""

from __future__ import annotations

import json
import resource
import sys


def tell(pages: int, seconds: float) -> None:
    """Print the outcome of one run; the largest memory held (ru_maxrss, kB) and processor seconds are added."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    said = {
        "pages": pages,
        "seconds": seconds,
        "memory_kb": used.ru_maxrss,
        "cpu": used.ru_utime + used.ru_stime,
    }
    sys.stdout.write(json.dumps(said) + "\n")
