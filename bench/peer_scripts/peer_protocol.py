"""The protocol between benchmark and peer: one line on stdin per measurement, its result on stdout.

Other output of the peer is redirected to stderr.
"""

import os
import sys

_results = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def serve_measurements(work):
    for _ in sys.stdin:
        print(repr(work()), file=_results)
