"""The log contains the output of a script byte for byte, in the order in which it was written."""

import pytest

from runyard.compute.local.compute import LocalCompute
from runyard.lifecycle.state import EndReason
from runyard.testing.work_orders import end_of, log_of, make_order


@pytest.fixture
def compute(tmp_path):
    compute = LocalCompute(tmp_path)
    yield compute
    compute.close()


def run(compute, order):
    compute.start(order)
    return end_of(order)


def test_output_and_errors_are_interleaved_as_written(compute, tmp_path):
    script = "import os\nfor n in range(2000): os.write(1 + n % 2, b'%d\\n' % n)\nos.system('echo child')"
    order = make_order(tmp_path, script)
    run(compute, order)
    assert log_of(order).split() == [*(b"%d" % n for n in range(2000)), b"child"]


def test_binary_bytes_survive(compute, tmp_path):
    script = "import os\nfor _ in range(40): os.write(1, bytes(range(256)))\nraise SystemExit(3)"
    order = make_order(tmp_path, script)
    end = run(compute, order)
    assert log_of(order) == bytes(range(256)) * 40
    assert end.message.startswith("exit code 3; last lines: ")
    assert "\0" not in end.last_lines


def test_a_line_of_ten_megabytes_survives(compute, tmp_path):
    script = "import sys\nsys.stdout.write('x' * 10_000_000)\nsys.stdout.flush()\nraise ValueError('y' * 3_000_000)"
    order = make_order(tmp_path, script)
    end = run(compute, order)
    log = log_of(order)
    assert log.startswith(b"x" * 10_000_000)
    assert log.endswith(b"ValueError: " + b"y" * 3_000_000 + b"\n")
    assert end.reason is EndReason.SCRIPT_FAILED
    assert len(end.message) < 600
    assert len(end.last_lines) < 50_000


@pytest.mark.real
def test_a_log_of_a_hundred_megabytes_survives(compute, tmp_path):
    script = "import os\nfor n in range(1000): os.write(1, (b'%07d ' % n) * 13107 + b'\\n')\n"
    script += "raise RuntimeError('at the end')"
    order = make_order(tmp_path, script)
    end = run(compute, order)
    log = log_of(order)
    assert len(log) > 100_000_000
    assert [log[n * 104857 : n * 104857 + 7] for n in range(1000)] == [b"%07d" % n for n in range(1000)]
    assert end.message == "RuntimeError: at the end"


def test_a_script_has_no_input_to_wait_for(compute, tmp_path):
    order = make_order(tmp_path, "print(repr(open(0).read()))")
    run(compute, order)
    assert log_of(order) == b"''\n"


def test_signals_work_in_a_script_as_in_a_shell(compute, tmp_path):
    script = (
        "import signal\n"
        "print([s.name for s in signal.valid_signals() if isinstance(s, signal.Signals)"
        " and signal.getsignal(s) is signal.SIG_IGN], signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
        "signal.raise_signal(signal.SIGINT)"
    )
    order = make_order(tmp_path, script)
    end = run(compute, order)
    # Python itself ignores these two
    assert log_of(order).splitlines()[0] == b"['SIGPIPE', 'SIGXFSZ'] set()"
    assert end.signal == "SIGINT"
