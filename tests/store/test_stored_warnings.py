"""Warnings of runs in the database, also those that version 0.1 stored as plain text."""

from __future__ import annotations

from runyard.lifecycle.warning import RunWarning, WarningKind, from_stored, incomplete, is_incomplete, to_stored


def test_notes_are_stored_as_text_and_other_kinds_with_their_kind() -> None:
    assert to_stored(RunWarning("slow disk")) == "slow disk"
    for warning in (RunWarning("slow disk"), incomplete("outputs/ is incomplete: disk full")):
        assert from_stored(to_stored(warning)) == warning


def test_a_run_that_version_0_1_could_not_store_completely_is_still_recognized() -> None:
    old = from_stored("outputs/ was not kept whole: no space left on device")
    assert old.kind is WarningKind.INCOMPLETE
    assert is_incomplete([from_stored("4 processes share 2 CPUs"), old])
    assert not is_incomplete([from_stored("4 processes share 2 CPUs")])


def test_the_kind_does_not_depend_on_the_wording() -> None:
    assert is_incomplete([incomplete("any text")])
    assert not is_incomplete([RunWarning("outputs/ is incomplete")])
