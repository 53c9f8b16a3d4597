import sys
from time import perf_counter

import wandb
from peer_protocol import serve_measurements

CALLS = 1_000
settings = wandb.Settings(silent=True, console="off")
run = wandb.init(project="bench", mode="offline", dir=sys.argv[1], settings=settings)


def seconds_per_call():
    started_at = perf_counter()
    for _ in range(CALLS):
        run.log({"loss": 0.5})
    return (perf_counter() - started_at) / CALLS


serve_measurements(seconds_per_call)
run.finish()
