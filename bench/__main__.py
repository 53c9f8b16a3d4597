"""`python -m bench [row …] [--quick] [--write]`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator

from bench import (
    cluster_rows,
    data_rows,
    environment_rows,
    gang_rows,
    import_rows,
    listing_rows,
    logging_rows,
    paint_rows,
    reading_rows,
    service_rows,
    snapshotting_rows,
    studio_rows,
    submit_rows,
    sweep_rows,
    tracking_rows,
    training_rows,
)
from bench.place import Place, a_place
from bench.report import print_row, print_table, write_page
from bench.row import FULL, QUICK, Row, Size

ROWS: dict[str, Callable[[Place, Size], Iterator[Row]]] = {
    "import": import_rows.starting,
    "submit": submit_rows.first_line_by_sdk,
    "run": submit_rows.first_line_by_command,
    "end": submit_rows.end_to_waiting,
    "log": logging_rows.cost_of_a_call,
    "points": logging_rows.points_until_readable,
    "durable": tracking_rows.durable_points,
    "mlflow": tracking_rows.by_mlflow,
    "read": reading_rows.reading,
    "training": training_rows.throughput,
    "snapshot": snapshotting_rows.snapshots,
    "list": listing_rows.listing,
    "chart": studio_rows.charts,
    "page": studio_rows.open_page,
    "paint": paint_rows.first_paint,
    "sweep": sweep_rows.children_per_second,
    "sweep-growth": sweep_rows.growth,
    "data": data_rows.folders,
    "data-s3": data_rows.buckets,
    "data-azure": data_rows.containers,
    "data-mount": data_rows.mounts,
    "environment": environment_rows.environments,
    "gang": gang_rows.two_ranks,
    "horovod": gang_rows.horovod,
    "death": gang_rows.death,
    "service": service_rows.requests,
    "service-script": service_rows.by_script,
    "batching": service_rows.batching,
    "deploy": service_rows.deploying,
    "slurm": cluster_rows.slurm_first_line,
    "slurm-queue": cluster_rows.slurm_polled,
    "ssh": cluster_rows.ssh_second_run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Speed, side by side.")
    parser.add_argument("rows", nargs="*", metavar="row", help=f"some of: {' '.join(ROWS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for a first look")
    parser.add_argument("--write", action="store_true", help="write the table to docs/reference/speed.md")
    options = parser.parse_args()
    unknown = [name for name in options.rows if name not in ROWS]
    if unknown:
        parser.error(f"no row {unknown[0]!r}; there are: {' '.join(ROWS)}")
    # where a developer keeps Python from writing bytecode, every start would compile all modules: users' starts do not
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the yard of the bench is closed all the same
    measured: dict[str, list[Row]] = {}
    for name in options.rows or ROWS:
        with a_place() as place:
            for row in ROWS[name](place, QUICK if options.quick else FULL):
                print_row(row)
                measured.setdefault(name, []).append(row)
        if options.write:  # after each: whoever has to stop keeps what is there
            write_page(measured, ROWS)
    print_table([row for rows in measured.values() for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
