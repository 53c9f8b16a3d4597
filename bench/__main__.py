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
    search_rows,
    service_rows,
    snapshot_rows,
    studio_rows,
    submit_rows,
    sweep_rows,
    tracking_rows,
    training_rows,
)
from bench.report import print_row, print_table, write_page
from bench.row import FULL, QUICK, Row, Size
from bench.sandbox import Sandbox, new_sandbox

ROWS: dict[str, Callable[[Sandbox, Size], Iterator[Row]]] = {
    "import": import_rows.startup,
    "submit": submit_rows.first_line_by_sdk,
    "run": submit_rows.first_line_by_command,
    "end": submit_rows.end_of_wait,
    "log": logging_rows.call_cost,
    "points": logging_rows.points_until_readable,
    "durable": tracking_rows.durable_points,
    "mlflow": tracking_rows.mlflow_client,
    "read": reading_rows.reading,
    "training": training_rows.throughput,
    "snapshot": snapshot_rows.snapshots,
    "list": listing_rows.listing,
    "search": search_rows.search,
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
    "service-script": service_rows.one_line_script,
    "batching": service_rows.batching,
    "deploy": service_rows.deployment,
    "slurm": cluster_rows.slurm_first_line,
    "slurm-queue": cluster_rows.slurm_status,
    "ssh": cluster_rows.ssh_second_run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks of Runyard and its peers.")
    parser.add_argument("rows", nargs="*", metavar="row", help=f"some of: {' '.join(ROWS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="measure fewer rounds")
    parser.add_argument("--write", action="store_true", help="write the table to docs/reference/speed.md")
    options = parser.parse_args()
    unknown = [name for name in options.rows if name not in ROWS]
    if unknown:
        parser.error(f"no row {unknown[0]!r}; the rows are: {' '.join(ROWS)}")
    # without bytecode files, every start would compile all modules, which does not happen to users
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exception, so that the yard of the bench is stopped
    measured: dict[str, list[Row]] = {}
    for name in options.rows or ROWS:
        with new_sandbox() as sandbox:
            for row in ROWS[name](sandbox, QUICK if options.quick else FULL):
                print_row(row)
                measured.setdefault(name, []).append(row)
        if options.write:  # after each benchmark, so that an interrupted run keeps its results
            write_page(measured, ROWS)
    print_table([row for rows in measured.values() for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
