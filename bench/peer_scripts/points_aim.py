"""Points a second, until they are on disk: a run is closed, so that everything it holds back is written."""

import sys
from time import perf_counter

from aim import Run
from answering import answer_each_ask

POINTS = 5_000


def points_a_second():
    run = Run(repo=sys.argv[1], system_tracking_interval=None, capture_terminal_logs=False, log_system_params=False)
    began = perf_counter()
    for step in range(POINTS):
        run.track(0.5, name="loss", step=step)
    run.close()
    return POINTS / (perf_counter() - began)


answer_each_ask(points_a_second)
