import sys
import time
from pathlib import Path

import submitit
from answering import answer_each_ask

folder = Path(sys.argv[1])
executor = submitit.LocalExecutor(folder / "jobs")
executor.update_parameters(timeout_min=5)


def first_line(mark):
    Path(mark).write_text(repr(time.monotonic()))


def seconds_to_first_line():
    began = time.monotonic()
    job = executor.submit(first_line, str(folder / "mark"))
    job.result()
    return float((folder / "mark").read_text()) - began


answer_each_ask(seconds_to_first_line)
