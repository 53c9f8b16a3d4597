"""Points per second until they are on disk: the writer is flushed."""

import sys
from time import perf_counter

from peer_protocol import serve_measurements
from tensorboardX import SummaryWriter

POINTS = 5_000
writer = SummaryWriter(sys.argv[1])


def points_per_second():
    started_at = perf_counter()
    for step in range(POINTS):
        writer.add_scalar("loss", 0.5, step)
    writer.flush()
    return POINTS / (perf_counter() - started_at)


serve_measurements(points_per_second)
writer.close()
