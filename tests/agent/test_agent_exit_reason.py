"""The end reason of a run, with the script's own error message."""

import re

import pytest

from runyard.agent.diagnosis.exit_reason import explain_exit
from runyard.agent.diagnosis.log_tail import parse_tail
from runyard.compute.local.compute import LocalCompute
from runyard.lifecycle.state import EndReason
from runyard.testing.work_orders import end_of, log_of, make_order, wait_until


@pytest.fixture
def compute(tmp_path):
    compute = LocalCompute(tmp_path)
    yield compute
    compute.close()


def run(compute, tmp_path, script, *arguments, **fields):
    order = make_order(tmp_path, script, *arguments, **fields)
    compute.start(order)
    return end_of(order)


def test_chained_exceptions_are_one_traceback(compute, tmp_path):
    script = "print('hello')\ntry:\n    {}['lr']\nexcept KeyError as e:\n    raise ValueError('bad lr') from e\n"
    end = run(compute, tmp_path, script)
    assert end.message == "ValueError: bad lr"
    assert end.traceback.count("Traceback (most recent call last):") == 2
    assert "KeyError: 'lr'" in end.traceback
    assert "hello" not in end.traceback
    assert end.last_lines.splitlines()[0] == "hello"


def test_a_syntax_error_in_the_entry_script(compute, tmp_path):
    end = run(compute, tmp_path, "x = (\n")
    assert end.message.startswith("SyntaxError: ")
    assert 'train.py", line 1' in end.traceback


def test_the_text_of_sys_exit_is_the_message(compute, tmp_path):
    script = "import sys, traceback\ntry: 1/0\nexcept ZeroDivisionError: traceback.print_exc()\n"
    script += "for n in range(30): print('epoch', n)\nsys.exit('no data in ./data')"
    end = run(compute, tmp_path, script)
    assert (end.reason, end.message) == (EndReason.SCRIPT_FAILED, "no data in ./data")
    assert len(end.last_lines.splitlines()) == 20


def test_an_exit_code_without_an_error_message(compute, tmp_path):
    end = run(compute, tmp_path, "print('a'); print('b'); raise SystemExit(3)")
    assert (end.message, end.exit_code) == ("exit code 3; last lines: a / b", 3)
    assert run(compute, tmp_path, "raise SystemExit(4)", run_id="quiet").message == "exit code 4; no output"


def test_invalid_arguments_are_reported_with_the_parsers_message(compute, tmp_path):
    script = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float)\np.parse_args()"
    end = run(compute, tmp_path, script, "--lr", "fast")
    assert end.message == "train.py: error: argument --lr: invalid float value: 'fast'"


def test_a_segmentation_fault_names_the_signal_and_its_usual_causes(compute, tmp_path):
    end = run(compute, tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (end.reason, end.signal, end.exit_code) == (EndReason.KILLED, "SIGSEGV", None)
    assert "usual" in end.message


def test_a_killed_script(compute, tmp_path):
    end = run(compute, tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert (end.reason, end.signal) == (EndReason.KILLED, "SIGKILL")


def test_a_memory_error_is_out_of_memory(compute, tmp_path):
    end = run(compute, tmp_path, "x = bytearray(1 << 60)")
    assert (end.reason, end.message) == (EndReason.OUT_OF_MEMORY, "MemoryError")


@pytest.mark.real
def test_a_run_above_its_memory_limit_is_stopped(compute, tmp_path):
    script = "x = b'1' * 200_000_000\nprint('up')\nimport time; time.sleep(600)"
    end = run(compute, tmp_path, script, memory_limit_gb=0.1)
    assert end.reason is EndReason.OUT_OF_MEMORY
    # the memory may be measured while it still grows
    assert re.fullmatch(r"used 0\.\d+ GB of the requested 0\.1 GB \(resources\.memory_gb\)", end.message)


@pytest.mark.real
def test_shared_memory_of_forked_workers_is_counted_once(compute, tmp_path):
    script = (
        "import os, time\nx = b'1' * 150_000_000\n"
        "children = [os.fork() or (time.sleep(1.5), os._exit(0)) for _ in range(4)]\n"
        "[os.waitpid(c, 0) for c in children]\nprint('done')"
    )
    order = make_order(tmp_path, script, memory_limit_gb=0.4)
    compute.start(order)
    assert end_of(order).reason is EndReason.SUCCEEDED


def test_a_missing_working_folder_is_a_failed_launch(compute, tmp_path):
    order = make_order(tmp_path, "")
    (tmp_path / "run_1/work/train.py").unlink()
    (tmp_path / "run_1/work").rmdir()
    compute.start(order)
    end = end_of(order)
    assert end.reason is EndReason.LAUNCH_FAILED
    assert "enter its folder" in end.message


def test_an_interpreter_that_is_not_executable_is_a_failed_launch(compute, tmp_path):
    order = make_order(tmp_path, "")
    order = type(order)(order.run_id, order.folder, (str(tmp_path / "run_1/work/train.py"),), order.variables)
    compute.start(order)
    end = end_of(order)
    assert (end.reason, end.message.rpartition(": ")[2]) == (EndReason.LAUNCH_FAILED, "Permission denied")


def test_the_stop_command_runs_before_the_signals(compute, tmp_path):
    marker = tmp_path / "marker"
    script = (
        "import os, signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (print('stopped:', os.path.exists({str(marker)!r})), sys.exit(0)))\n"
        "print('up')\ntime.sleep(600)"
    )
    order = make_order(tmp_path, script, stop_argv=("touch", str(marker)), grace_s=0.5)
    handle = compute.start(order)
    wait_until(lambda: log_of(order), "the first line")
    compute.stop(handle)
    assert end_of(order).reason is EndReason.CANCELED
    assert log_of(order) == b"up\nstopped: True\n"


def test_a_container_engine_may_clean_up_after_the_script(compute, tmp_path):
    script = f"import os\nos.system('(sleep 0.3; touch {tmp_path}/cleaned) > /dev/null &')"
    end = run(compute, tmp_path, script, stop_argv=("true",))
    assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
    assert (tmp_path / "cleaned").exists()


# pure: parsing the end of a log

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    f()\n'


def explain(text, exit_code=1, *, oom_killed=False):
    tail = parse_tail(text.encode() if isinstance(text, str) else text)
    return explain_exit(exit_code, tail, stop=None, processes_left=0, oom_killed=oom_killed)


@pytest.mark.parametrize(
    "line",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; ...)",
        "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[1,2]",
        "OSError: [Errno 12] Cannot allocate memory",
    ],
)
def test_out_of_memory_errors_of_frameworks(line):
    end = explain(TRACEBACK + line + "\n")
    assert (end.reason, end.message) == (EndReason.OUT_OF_MEMORY, line)


def test_a_kill_while_memory_ran_out():
    assert explain("", -9, oom_killed=True).reason is EndReason.OUT_OF_MEMORY
    assert explain("", -9).reason is EndReason.KILLED
    worker = TRACEBACK + "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. \n"
    assert explain(worker, oom_killed=True).reason is EndReason.OUT_OF_MEMORY
    assert explain(worker).reason is EndReason.SCRIPT_FAILED
    assert explain("podman: killed\n", 137, oom_killed=True).reason is EndReason.OUT_OF_MEMORY


def test_native_code_that_aborts_when_memory_runs_out():
    text = "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
    assert explain(text, -6).reason is EndReason.OUT_OF_MEMORY


def test_an_error_of_several_lines_followed_by_other_output():
    text = (
        TRACEBACK + "RuntimeError: CUDA error: device-side assert\nFor debugging consider\n\nwandb: bye\nwandb: see\n"
    )
    end = explain(text)
    assert end.message == "RuntimeError: CUDA error: device-side assert"
    assert end.traceback.endswith("For debugging consider")


def test_an_error_in_a_data_loader_worker_is_the_message():
    text = (
        TRACEBACK
        + "RuntimeError: Caught ValueError in DataLoader worker process 0.\nOriginal "
        + TRACEBACK
        + "ValueError: bad image\n\n"
    )
    end = explain(text)
    assert end.message == "ValueError: bad image"
    assert end.traceback.startswith("Traceback")


def test_an_exception_group():
    text = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "train.py", line 1, in <module>\n'
        "  | ExceptionGroup: two things (2 sub-exceptions)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | ValueError: a\n"
        "    +---------------- 2 ----------------\n"
        "    | ValueError: b\n"
        "    +------------------------------------\n"
    )
    end = explain(text)
    assert end.message == "ExceptionGroup: two things (2 sub-exceptions)"
    assert end.traceback.count("\n") == 7


def test_progress_bars_and_colors_are_shown_as_on_a_terminal():
    end = explain("  1%|\r 50%|\r100%|done\n\x1b[31mred\x1b[0m\n\xff\x00\n", 3)
    assert end.last_lines.splitlines()[:2] == ["100%|done", "red"]


def test_a_traceback_truncated_at_its_start_is_not_a_traceback():
    assert explain('  File "train.py", line 3\n    f()\nValueError: bad\n').message == "ValueError: bad"


def test_an_empty_log():
    assert explain("", 1).message == "exit code 1; no output"


def test_the_rank_prefix_of_torch_is_not_part_of_the_error():
    text = "".join(f"[rank1]: {line}\n" for line in (TRACEBACK + "ValueError: bad lr").splitlines())
    end = explain(text)
    assert (end.message, end.traceback) == ("ValueError: bad lr", TRACEBACK + "ValueError: bad lr")
    aborted = explain(text + "terminate called without an active exception\n", -6)
    assert (aborted.reason, aborted.message) == (EndReason.SCRIPT_FAILED, "ValueError: bad lr (then SIGABRT)")
