"""The capacity of this machine."""

import os

from runyard.posix.machine import Gpu, machine_capacity, parse_nvidia_smi

TWO_GPUS = """\
0, NVIDIA A100-SXM4-40GB, 40960
1, NVIDIA A100-SXM4-40GB, 40960
"""


def test_gpus_are_parsed_from_nvidia_smi():
    assert parse_nvidia_smi(TWO_GPUS) == (
        Gpu(0, "NVIDIA A100-SXM4-40GB", 40.0),
        Gpu(1, "NVIDIA A100-SXM4-40GB", 40.0),
    )


def test_a_gpu_without_known_memory_is_counted():
    assert parse_nvidia_smi("0, NVIDIA GB10, [N/A]\n") == (Gpu(0, "NVIDIA GB10", 0.0),)


def test_error_messages_are_not_gpus():
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nNo devices were found\n"
    assert parse_nvidia_smi(text) == ()


def test_cuda_visible_devices_limits_the_gpus():
    assert [gpu.index for gpu in parse_nvidia_smi(TWO_GPUS, "1")] == [1]
    assert parse_nvidia_smi(TWO_GPUS, "") == ()
    assert len(parse_nvidia_smi(TWO_GPUS, "GPU-8f3e")) == 2


def test_this_machine_has_cpus_and_memory():
    machine = machine_capacity()
    assert 1 <= machine.cpus <= (os.cpu_count() or 1)
    assert machine.memory_gb > 0
    assert machine_capacity() is machine


def test_a_failing_nvidia_smi_means_no_gpus(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'no driver'\nexit 9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert machine_capacity.__wrapped__().gpus == ()
    program.write_text(f"#!/bin/sh\necho '{TWO_GPUS}'\n")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert len(machine_capacity.__wrapped__().gpus) == 2
