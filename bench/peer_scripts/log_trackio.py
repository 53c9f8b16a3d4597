import os
import sys
from time import perf_counter

os.environ["TRACKIO_DIR"] = sys.argv[1]

import trackio
from peer_protocol import serve_measurements

CALLS = 2_000
trackio.init(project="bench", embed=False)


def seconds_per_call():
    started_at = perf_counter()
    for _ in range(CALLS):
        trackio.log({"loss": 0.5})
    return (perf_counter() - started_at) / CALLS


serve_measurements(seconds_per_call)
trackio.finish()
