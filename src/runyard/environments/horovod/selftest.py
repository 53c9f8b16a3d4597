"""Run on 2 ranks in the environment that a wheel was built for: what Horovod promises, in small.

python -I prove.py torch|tensorflow
"""

from __future__ import annotations

import faulthandler
import sys
from importlib import import_module

_LIMIT_S = 180.0  # a rank that waits for a lost one must not stay


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
        sys.exit(f"allreduce on {hvd.size()} ranks gave {summed} instead of {expected}")
    hvd.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
