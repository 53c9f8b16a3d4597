"""Points a second, until they are on disk: the writer is flushed."""

import sys
from time import perf_counter

from answering import answer_each_ask
from tensorboardX import SummaryWriter

POINTS = 5_000
writer = SummaryWriter(sys.argv[1])


def points_a_second():
    began = perf_counter()
    for step in range(POINTS):
        writer.add_scalar("loss", 0.5, step)
    writer.flush()
    return POINTS / (perf_counter() - began)


answer_each_ask(points_a_second)
writer.close()
