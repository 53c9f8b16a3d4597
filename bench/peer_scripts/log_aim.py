import sys
from time import perf_counter

from aim import Run
from peer_protocol import serve_measurements

CALLS = 1_000
run = Run(repo=sys.argv[1], system_tracking_interval=None, capture_terminal_logs=False, log_system_params=False)


def seconds_per_call():
    started_at = perf_counter()
    for step in range(CALLS):
        run.track(0.5, name="loss", step=step)
    return (perf_counter() - started_at) / CALLS


serve_measurements(seconds_per_call)
run.close()
