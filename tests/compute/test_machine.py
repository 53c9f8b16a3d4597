"""What the machine has, read as text."""

import os

from runyard.compute.base import Gpu
from runyard.compute.local.machine import machine_capacity, parse_nvidia_smi

TWO_CARDS = """\
0, NVIDIA A100-SXM4-40GB, 40960
1, NVIDIA A100-SXM4-40GB, 40960
"""


def test_cards_as_nvidia_smi_lists_them():
    assert parse_nvidia_smi(TWO_CARDS) == (
        Gpu(0, "NVIDIA A100-SXM4-40GB", 40.0),
        Gpu(1, "NVIDIA A100-SXM4-40GB", 40.0),
    )


def test_a_card_that_does_not_tell_its_memory_counts_all_the_same():
    assert parse_nvidia_smi("0, NVIDIA GB10, [N/A]\n") == (Gpu(0, "NVIDIA GB10", 0.0),)


def test_complaints_are_not_cards():
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nNo devices were found\n"
    assert parse_nvidia_smi(text) == ()


def test_a_yard_that_was_given_some_of_the_cards_sees_those():
    assert [gpu.index for gpu in parse_nvidia_smi(TWO_CARDS, "1")] == [1]
    assert parse_nvidia_smi(TWO_CARDS, "") == ()
    assert len(parse_nvidia_smi(TWO_CARDS, "GPU-8f3e")) == 2


def test_this_machine_has_something_to_run_on():
    machine = machine_capacity()
    assert 1 <= machine.cpus <= (os.cpu_count() or 1)
    assert machine.memory_gb > 0
    assert machine_capacity() is machine


def test_a_failing_nvidia_smi_means_no_cards(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'no driver'\nexit 9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert machine_capacity.__wrapped__().gpus == ()
    program.write_text(f"#!/bin/sh\necho '{TWO_CARDS}'\n")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert len(machine_capacity.__wrapped__().gpus) == 2
