import sys
from time import perf_counter

from aim import Run
from answering import answer_each_ask

CALLS = 1_000
run = Run(repo=sys.argv[1], system_tracking_interval=None, capture_terminal_logs=False, log_system_params=False)


def seconds_a_call():
    began = perf_counter()
    for step in range(CALLS):
        run.track(0.5, name="loss", step=step)
    return (perf_counter() - began) / CALLS


answer_each_ask(seconds_a_call)
run.close()
