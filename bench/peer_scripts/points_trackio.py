"""Points per second until they are in its database: `finish` waits for pending writes."""

import os
import sys
from time import perf_counter

os.environ["TRACKIO_DIR"] = sys.argv[1]

import trackio
from peer_protocol import serve_measurements

POINTS = 5_000


def points_per_second():
    trackio.init(project="bench", embed=False)
    started_at = perf_counter()
    for _ in range(POINTS):
        trackio.log({"loss": 0.5})
    trackio.finish()
    return POINTS / (perf_counter() - started_at)


serve_measurements(points_per_second)
