"""Why a run ended, told in the script's own words."""

import pytest

from runyard.agent.diagnosis.exit_reason import explain_exit
from runyard.agent.diagnosis.log_tail import parse_tail
from runyard.compute.local.compute import LocalCompute
from runyard.lifecycle.state import EndReason
from runyard.testing.compute import end_of, log_of, make_order, wait_until


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


def test_a_syntax_error_of_the_script_itself(compute, tmp_path):
    end = run(compute, tmp_path, "x = (\n")
    assert end.message.startswith("SyntaxError: ")
    assert 'train.py", line 1' in end.traceback


def test_the_text_of_sys_exit_is_the_message(compute, tmp_path):
    script = "import sys, traceback\ntry: 1/0\nexcept ZeroDivisionError: traceback.print_exc()\n"
    script += "for n in range(30): print('epoch', n)\nsys.exit('no data in ./data')"
    end = run(compute, tmp_path, script)
    assert (end.reason, end.message) == (EndReason.SCRIPT_FAILED, "no data in ./data")
    assert len(end.last_lines.splitlines()) == 20


def test_an_exit_code_without_words(compute, tmp_path):
    end = run(compute, tmp_path, "print('a'); print('b'); raise SystemExit(3)")
    assert (end.message, end.exit_code) == ("exit code 3; last lines: a / b", 3)
    assert run(compute, tmp_path, "raise SystemExit(4)", run_id="quiet").message == "exit code 4; it wrote nothing"


def test_bad_arguments_are_told_by_the_scripts_own_parser(compute, tmp_path):
    script = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float)\np.parse_args()"
    end = run(compute, tmp_path, script, "--lr", "fast")
    assert end.message == "train.py: error: argument --lr: invalid float value: 'fast'"


def test_a_segmentation_fault_names_the_signal_and_what_is_usual(compute, tmp_path):
    end = run(compute, tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (end.reason, end.signal, end.exit_code) == (EndReason.KILLED, "SIGSEGV", None)
    assert "usual" in end.message


def test_a_script_that_somebody_killed(compute, tmp_path):
    end = run(compute, tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert (end.reason, end.signal) == (EndReason.KILLED, "SIGKILL")


def test_a_memory_error_is_out_of_memory(compute, tmp_path):
    end = run(compute, tmp_path, "x = bytearray(1 << 60)")
    assert (end.reason, end.message) == (EndReason.OUT_OF_MEMORY, "MemoryError")


@pytest.mark.real
def test_a_run_above_its_memory_is_stopped(compute, tmp_path):
    script = "x = b'1' * 200_000_000\nprint('up')\nimport time; time.sleep(600)"
    end = run(compute, tmp_path, script, memory_limit_gb=0.1)
    assert end.reason is EndReason.OUT_OF_MEMORY
    assert end.message == "used 0.19 GB of the 0.1 GB asked for (resources.memory_gb)"


@pytest.mark.real
def test_forked_workers_that_share_their_memory_are_counted_once(compute, tmp_path):
    script = (
        "import os, time\nx = b'1' * 150_000_000\n"
        "children = [os.fork() or (time.sleep(1.5), os._exit(0)) for _ in range(4)]\n"
        "[os.waitpid(c, 0) for c in children]\nprint('through')"
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


def test_an_interpreter_that_may_not_be_run_is_a_failed_launch(compute, tmp_path):
    order = make_order(tmp_path, "")
    order = type(order)(order.run_id, order.folder, (str(tmp_path / "run_1/work/train.py"),), order.variables)
    compute.start(order)
    end = end_of(order)
    assert (end.reason, end.message.rpartition(": ")[2]) == (EndReason.LAUNCH_FAILED, "Permission denied")


def test_the_stop_command_comes_before_the_signals(compute, tmp_path):
    told = tmp_path / "told"
    script = (
        "import os, signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (print('told:', os.path.exists({str(told)!r})), sys.exit(0)))\n"
        "print('up')\ntime.sleep(600)"
    )
    order = make_order(tmp_path, script, stop_argv=("touch", str(told)), grace_s=0.5)
    handle = compute.start(order)
    wait_until(lambda: log_of(order), "the first line")
    compute.stop(handle)
    assert end_of(order).reason is EndReason.CANCELED
    assert log_of(order) == b"up\ntold: True\n"


def test_a_container_engine_may_tidy_up_behind_the_script(compute, tmp_path):
    script = f"import os\nos.system('(sleep 0.3; touch {tmp_path}/tidied) > /dev/null &')"
    end = run(compute, tmp_path, script, stop_argv=("true",))
    assert (end.reason, end.processes_left) == (EndReason.SUCCEEDED, 0)
    assert (tmp_path / "tidied").exists()


# --- pure: what is read in a log's tail

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    f()\n'


def words_and_end(text, exit_code=1, **given):
    words = parse_tail(text.encode() if isinstance(text, str) else text)
    return explain_exit(exit_code, words, stop=None, processes_left=0, **{"oom_killed": False, **given})


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
def test_out_of_memory_in_the_words_of_frameworks(line):
    end = words_and_end(TRACEBACK + line + "\n")
    assert (end.reason, end.message) == (EndReason.OUT_OF_MEMORY, line)


def test_a_kill_while_the_kernel_was_short_of_memory():
    assert words_and_end("", -9, oom_killed=True).reason is EndReason.OUT_OF_MEMORY
    assert words_and_end("", -9).reason is EndReason.KILLED
    worker = TRACEBACK + "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. \n"
    assert words_and_end(worker, oom_killed=True).reason is EndReason.OUT_OF_MEMORY
    assert words_and_end(worker).reason is EndReason.SCRIPT_FAILED
    assert words_and_end("podman: killed\n", 137, oom_killed=True).reason is EndReason.OUT_OF_MEMORY


def test_native_code_that_aborts_for_want_of_memory():
    text = "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
    assert words_and_end(text, -6).reason is EndReason.OUT_OF_MEMORY


def test_an_error_of_several_lines_and_what_came_after_it():
    text = (
        TRACEBACK + "RuntimeError: CUDA error: device-side assert\nFor debugging consider\n\nwandb: bye\nwandb: see\n"
    )
    end = words_and_end(text)
    assert end.message == "RuntimeError: CUDA error: device-side assert"
    assert end.traceback.endswith("For debugging consider")


def test_a_data_loaders_worker_speaks_for_itself():
    text = (
        TRACEBACK
        + "RuntimeError: Caught ValueError in DataLoader worker process 0.\nOriginal "
        + TRACEBACK
        + "ValueError: bad image\n\n"
    )
    end = words_and_end(text)
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
    end = words_and_end(text)
    assert end.message == "ExceptionGroup: two things (2 sub-exceptions)"
    assert end.traceback.count("\n") == 7


def test_progress_bars_and_colours_are_shown_as_on_a_terminal():
    end = words_and_end("  1%|\r 50%|\r100%|done\n\x1b[31mred\x1b[0m\n\xff\x00\n", 3)
    assert end.last_lines.splitlines()[:2] == ["100%|done", "red"]


def test_a_traceback_cut_at_the_beginning_of_the_tail_is_no_traceback():
    assert words_and_end('  File "train.py", line 3\n    f()\nValueError: bad\n').message == "ValueError: bad"


def test_an_empty_log():
    assert words_and_end("", 1).message == "exit code 1; it wrote nothing"


def test_the_rank_that_torch_writes_before_its_lines_is_no_part_of_the_error():
    text = "".join(f"[rank1]: {line}\n" for line in (TRACEBACK + "ValueError: bad lr").splitlines())
    end = words_and_end(text)
    assert (end.message, end.traceback) == ("ValueError: bad lr", TRACEBACK + "ValueError: bad lr")
    aborted = words_and_end(text + "terminate called without an active exception\n", -6)
    assert (aborted.reason, aborted.message) == (EndReason.SCRIPT_FAILED, "ValueError: bad lr (then SIGABRT)")
