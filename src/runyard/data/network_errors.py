"""What goes wrong on the way to a datastore, in words: who, what and why, and never with a credential in it."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from runyard.data.base import Changed, Unreachable
from runyard.errors import DataException

_CODE = re.compile(r"<Code>([^<]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<\n]+)")
_STATUS = re.compile(r"status code: (\d{3})")
_SIGNED = re.compile(r"((?:sig|signature|x-amz-[a-z-]+|se|sp|sv|token|key)=)[^&\s\"']+", re.IGNORECASE)
_REFUSED = ("401", "403")
_OWN_CLOUD, _OWN_GOOGLE = "169.254.169.254", "metadata.google"
# what the library says of credentials that it cannot even read, before anybody is asked -> which they are
_UNREADABLE = {
    "Invalid Access Key": "account_key",
    "SAS query pair": "sas_token",
    "service account file": "service_account_key",
    "reading pem file": "service_account_key",
}
_AGAIN = (
    "register it again with the right ones: Datastore.register_…(…, overwrite=True), "
    "or runyard data add NAME … --overwrite"
)
_NO_PARTS = "non-partial response"


class NotInPieces(Exception):
    """The server answers with all of a file when a part of it was asked for."""


@dataclass(frozen=True)
class Asked:
    """Whom, and what must not be repeated of the answer."""

    name: str
    kind: str
    hidden: tuple[str, ...] = ()


@contextmanager
def explained(asked: Asked, path: str = "", *, writes: bool = False) -> Iterator[None]:
    """FileNotFoundError goes through: whether it is one is the caller's to say. Of a file that is to be written, it
    is its bucket that is not there."""
    from obstore import exceptions

    try:
        yield
    except DataException:
        raise
    except FileNotFoundError as error:
        if writes and error.filename is None:
            raise _in_words(asked, path, error) from None
        raise
    except exceptions.PreconditionError:
        raise Changed(
            f"{path} of datastore {asked.name!r} was written to while it was read",
            hint="try again when nobody writes to it",
        ) from None
    except (exceptions.BaseError, ValueError) as error:
        if _NO_PARTS in str(error):
            raise NotInPieces from error
        # `from None`: the library's own error shows addresses with their signatures
        raise _in_words(asked, path, error) from None
    except OSError as error:
        raise of_disk(error) from error


def said(asked: Asked, text: str) -> str:
    """An answer that can be shown."""
    for secret in asked.hidden:
        if len(secret) > 3:
            text = text.replace(secret, "••••••")
    return _SIGNED.sub(r"\1••••••", text)


def _in_words(asked: Asked, path: str, error: Exception) -> DataException:
    from obstore import exceptions

    text = said(asked, str(error).partition("\n\nDebug source")[0])
    code, message, status = (pattern.search(text) for pattern in (_CODE, _MESSAGE, _STATUS))
    reason = f"{code[1]}: {message[1]}" if code and message else code[1] if code else text.strip()
    where = f"datastore {asked.name!r}"
    if _OWN_CLOUD in text or _OWN_GOOGLE in text:  # the last place that is asked for credentials: a cloud's machine
        return DataException(
            f"{where} needs credentials: none were given, none are in the yard's environment, and this is no machine "
            "of a cloud that has some",
            hint="give them when you register it (--credentials on the command line); if it is open to everybody, say "
            "anonymous=True (--anonymous)",
        )
    if isinstance(error, (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)) or (
        status and status[1] in _REFUSED
    ):
        return DataException(
            f"{where} refuses the credentials that it was registered with: {reason}",
            hint=_AGAIN,
        )
    unreadable = next((name for words, name in _UNREADABLE.items() if words in text), None)
    if unreadable is not None:
        return DataException(
            f"{where} was registered with wrong credentials: its {unreadable} cannot be one: "
            f"{reason.partition(' error: ')[2] or reason}",
            hint=_AGAIN,
        )
    if code and code[1] in ("NoSuchBucket", "ContainerNotFound"):
        return DataException(
            f"{where}: its bucket or container is not there: {reason}", hint="make it, or name another"
        )
    if isinstance(error, (exceptions.InvalidPathError, ValueError)):
        return DataException(f"{where} has no file of the name {path!r}: {reason}", hint="give it another name")
    if status and status[1].startswith("4") and status[1] not in ("408", "429"):
        return DataException(f"{where} refuses {path!r}: {reason}")
    return Unreachable(f"{where} cannot be reached: {reason}", hint="is its server up, and the network?")


def of_disk(error: OSError, place: object = "") -> DataException:
    """Of this machine's, where something was to be written or read."""
    place = error.filename or place or "this machine"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DataException(
            f"there is no room in {place}: {error.strerror}",
            hint="free some space there and try again: what arrived is kept, and nothing half is left",
        )
    return DataException(f"{place}: {error.strerror or error}")
