import os
import sys
from time import perf_counter

os.environ["TRACKIO_DIR"] = sys.argv[1]

import trackio
from answering import answer_each_ask

CALLS = 2_000
trackio.init(project="bench", embed=False)


def seconds_a_call():
    began = perf_counter()
    for _ in range(CALLS):
        trackio.log({"loss": 0.5})
    return (perf_counter() - began) / CALLS


answer_each_ask(seconds_a_call)
trackio.finish()
