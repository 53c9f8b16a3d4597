import sys
from time import perf_counter

import wandb
from answering import answer_each_ask

CALLS = 1_000
settings = wandb.Settings(silent=True, console="off")
run = wandb.init(project="bench", mode="offline", dir=sys.argv[1], settings=settings)


def seconds_a_call():
    began = perf_counter()
    for _ in range(CALLS):
        run.log({"loss": 0.5})
    return (perf_counter() - began) / CALLS


answer_each_ask(seconds_a_call)
run.finish()
