"""Tests a Horovod build with an allreduce on 2 ranks, in the environment that it was built for.

python -I selftest.py torch|tensorflow
"""

from __future__ import annotations

import faulthandler
import sys
from importlib import import_module

FAILURE = "selftest failed: "  # marks the reason in the output
_LIMIT_S = 180.0  # a rank must not wait forever for one that was lost


def main(framework: str) -> None:
    faulthandler.dump_traceback_later(_LIMIT_S, exit=True)
    if framework == "torch":
        torch = import_module("torch")
        hvd = import_module("horovod.torch")
        hvd.init()
        summed = hvd.allreduce(torch.arange(8.0) * (hvd.rank() + 1), op=hvd.Sum).tolist()
    else:
        tf = import_module("tensorflow")
        hvd = import_module("horovod.tensorflow")
        hvd.init()
        summed = hvd.allreduce(tf.range(8.0) * float(hvd.rank() + 1), op=hvd.Sum).numpy().tolist()
    expected = [value * sum(range(1, hvd.size() + 1)) for value in map(float, range(8))]
    if hvd.size() != 2 or summed != expected:
        sys.exit(f"{FAILURE}allreduce on {hvd.size()} ranks: expected {expected}, got {summed}")
    hvd.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
