"""Points per second until they are on disk: the run is closed, so that all buffers are written."""

import sys
from time import perf_counter

from aim import Run
from peer_protocol import serve_measurements

POINTS = 5_000


def points_per_second():
    run = Run(repo=sys.argv[1], system_tracking_interval=None, capture_terminal_logs=False, log_system_params=False)
    started_at = perf_counter()
    for step in range(POINTS):
        run.track(0.5, name="loss", step=step)
    run.close()
    return POINTS / (perf_counter() - started_at)


serve_measurements(points_per_second)
