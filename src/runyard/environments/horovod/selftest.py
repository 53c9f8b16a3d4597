"""Tests a Horovod build with an allreduce on 2 ranks, in the environment that it was built for.

python -I selftest.py torch|tensorflow LIMIT_S STACKS
"""

from __future__ import annotations

import faulthandler
import os
import sys
from importlib import import_module

FAILURE = "selftest failed: "  # marks the reason in the output
IMPORT_FACTOR = 4  # importing a framework reads gigabytes, and is no test of Horovod


def main(framework: str, limit_s: float, stacks: str) -> None:
    """Run the test.

    Args:
        framework: The module of Horovod to test.
        limit_s: Time limit of the test, counted from the end of the imports. A rank must not wait forever for one that
            was lost.
        stacks: Prefix of the file that gets the stacks of all threads when the limit is exceeded; else it stays empty.
    """
    with open(f"{stacks}.{os.getpid()}", "w", encoding="utf-8") as file:
        faulthandler.dump_traceback_later(limit_s * IMPORT_FACTOR, exit=True, file=file)
        library = import_module(framework)
        hvd = import_module(f"horovod.{framework}")
        faulthandler.dump_traceback_later(limit_s, exit=True, file=file)
        hvd.init()
        if framework == "torch":
            summed = hvd.allreduce(library.arange(8.0) * (hvd.rank() + 1), op=hvd.Sum).tolist()
        else:
            summed = hvd.allreduce(library.range(8.0) * float(hvd.rank() + 1), op=hvd.Sum).numpy().tolist()
        expected = [value * sum(range(1, hvd.size() + 1)) for value in map(float, range(8))]
        if hvd.size() != 2 or summed != expected:
            sys.exit(f"{FAILURE}allreduce on {hvd.size()} ranks: expected {expected}, got {summed}")
        hvd.shutdown()
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
