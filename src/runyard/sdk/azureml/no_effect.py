"""Arguments that configured the cloud and have no effect on a yard: logged once, and recorded with the run.

    no_effect.warn_ignored(self, "vm_priority", vm_priority, "your own machines are never preempted")

The first time, a line goes to the logger ``runyard``. Notes about an object are stored with the runs that use the
object; notes about a function are stored with every run that this process submits later. ``runyard explain RUN`` shows
both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runyard.spec.run import NoEffect

NOTES = "_no_effect_notes"
_SECRETS = ("password", "key", "token", "secret", "passphrase", "credential", "connection_string", "sas")
_logged: set[tuple[str, str, str]] = set()  # owner, argument, reason: a loop logs it once
_function_notes: dict[tuple[str, str], NoEffect] = {}


def warn_ignored(owner: Any, argument: str, value: Any, reason: str, *, caller: str = "") -> None:
    """Record that an argument has no effect, and log it the first time. A value of None is not recorded.

    Args:
        owner: The object that was created or called, or the name of a function such as ``"Workspace.create"``.
        argument: Name of the argument.
        value: Its value. A secret is not stored.
        reason: The reason that it has no effect.
        caller: The name to show, where it differs from the class of ``owner``.
    """
    if value is None:
        return
    from runyard.spec.run import NoEffect  # not at the top: every training script would pay for this import

    owner_class = owner if isinstance(owner, type) else type(owner)
    name = caller or (owner if isinstance(owner, str) else owner_class.__name__)
    note = NoEffect(name, argument, _display(argument, value), reason)
    if isinstance(owner, (str, type)):
        _function_notes[name, argument] = note
    else:
        # written to __dict__ directly, because a Section refuses unknown attribute names
        owner.__dict__.setdefault(NOTES, {})[argument] = note
    if (name, argument, reason) not in _logged:
        _logged.add((name, argument, reason))
        from runyard.sdk.core.validation import log

        call = f"{note.owner}({note.argument}={note.value})" if note.argument else note.owner
        log.warning("%s has no effect here: %s", call, reason)


def warn_call_ignored(call: str, reason: str) -> None:
    """Record that a call such as ``Workspace.sync_keys()`` does nothing."""
    warn_ignored(call, "", "", reason)


def notes_of(*owners: Any) -> tuple[NoEffect, ...]:
    """Return the notes about these objects without duplicates, in the order of the objects."""
    notes: dict[NoEffect, None] = {}
    for owner in owners:
        notes.update(dict.fromkeys(getattr(owner, "__dict__", {}).get(NOTES, {}).values()))
    return tuple(notes)


def process_notes() -> tuple[NoEffect, ...]:
    """Return the notes about functions and classes that this process has called."""
    return tuple(_function_notes.values())


def _display(argument: str, value: Any) -> str:
    """Shorten a value, and hide secrets: the text is logged, stored and printed."""
    if any(word in argument.lower() for word in _SECRETS):
        return "…"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:79] + "…"
