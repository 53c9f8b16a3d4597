"""Points a second, until they are in its database: `finish` waits for what is under way."""

import os
import sys
from time import perf_counter

os.environ["TRACKIO_DIR"] = sys.argv[1]

import trackio
from answering import answer_each_ask

POINTS = 5_000


def points_a_second():
    trackio.init(project="bench", embed=False)
    began = perf_counter()
    for _ in range(POINTS):
        trackio.log({"loss": 0.5})
    trackio.finish()
    return POINTS / (perf_counter() - began)


answer_each_ask(points_a_second)
