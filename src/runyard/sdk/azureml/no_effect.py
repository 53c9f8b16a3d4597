"""Arguments that meant something to a cloud and mean nothing to a yard: said once, and kept with the run.

    no_effect.told(self, "vm_priority", vm_priority, "machines of your own are not taken away")

The first time a line goes to the log ``runyard``. What was told of an object travels with the run that it is a part of,
what was told of a function with the runs that this process submits after it: ``runyard explain RUN`` shows both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runyard.spec.run import NoEffect

NOTES = "_told_no_effect"
_SECRETS = ("password", "key", "token", "secret", "passphrase", "credential", "connection_string", "sas")
_said: dict[tuple[str, str, str], NoEffect] = {}  # by whom and what: a loop says it once
_of_functions: dict[tuple[str, str], NoEffect] = {}


def told(owner: Any, argument: str, value: Any, why: str, *, by: str = "") -> None:
    """``argument`` of ``owner`` was given as ``value`` and changes nothing, because of ``why``.

    ``owner`` is the object that was made or called, or the name of a function: ``"Workspace.create"``. Nothing is said
    of a value that is None, so that a caller can pass on what it was given. ``by`` is what people called, where that
    is not the object's own class.
    """
    if value is None:
        return
    from runyard.spec.run import NoEffect  # which every training script would wait for

    kind = owner if isinstance(owner, type) else type(owner)
    name = by or (owner if isinstance(owner, str) else kind.__name__)
    note = NoEffect(name, argument, _shown(argument, value), why)
    if isinstance(owner, (str, type)):
        _of_functions[name, argument] = note
    else:
        # into __dict__ itself: settings with fixed names refuse others
        owner.__dict__.setdefault(NOTES, {})[argument] = note
    if (name, argument, why) not in _said:
        _said[name, argument, why] = note
        from runyard.sdk.core.validation import log

        log.warning("%s has no effect here: %s", _called(note), why)


def nothing_done(call: str, why: str) -> None:
    """The same for a whole call that does nothing here: ``nothing_done("Workspace.sync_keys()", "…")``."""
    told(call, "", "", why)


def about(*owners: Any) -> tuple[NoEffect, ...]:
    """What was told of these objects, each thing once, in the order of the objects."""
    found: dict[NoEffect, None] = {}
    for owner in owners:
        found.update(dict.fromkeys(getattr(owner, "__dict__", {}).get(NOTES, {}).values()))
    return tuple(found)


def in_this_process() -> tuple[NoEffect, ...]:
    """What was told of functions and classes."""
    return tuple(_of_functions.values())


def _called(note: NoEffect) -> str:
    return f"{note.owner}({note.argument}={note.value})" if note.argument else note.owner


def _shown(argument: str, value: Any) -> str:
    """Short, and never a secret: it is logged, stored and printed."""
    if any(word in argument.lower() for word in _SECRETS):
        return "…"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:79] + "…"
