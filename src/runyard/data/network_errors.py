"""Translates errors of object stores into messages that name the datastore and the reason, without credentials.

The object-store library reports most problems as text only; all matching on its texts is in this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from runyard.data.base import StoreUnreachable, changed_file_error, disk_error
from runyard.errors import DataException
from runyard.spec.redaction import MASK

_CODE = re.compile(r"<Code>([^<]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<\n]+)")
_STATUS = re.compile(r"status code: (\d{3})")
_SIGNATURE = re.compile(r"((?:sig|signature|x-amz-[a-z-]+|se|sp|sv|token|key)=)[^&\s\"']+", re.IGNORECASE)
_ACCESS_DENIED = ("401", "403")
_RETRYABLE = ("408", "429")
_METADATA_SERVERS = ("169.254.169.254", "metadata.google")
# texts of the library about credentials that it cannot parse, before any request -> name of the credential
_MALFORMED_CREDENTIALS = {
    "Invalid Access Key": "account_key",
    "SAS query pair": "sas_token",
    "service account file": "service_account_key",
    "reading pem file": "service_account_key",
}
_REGISTER_AGAIN = (
    "register it again with the right ones: Datastore.register_…(…, overwrite=True), "
    "or runyard data add NAME … --overwrite"
)
_NO_RANGES = "non-partial response"


class RangeNotSupported(Exception):
    """The server sends the complete file when a byte range is requested."""


@dataclass(frozen=True)
class StoreContext:
    """The datastore of a request, and the secrets that must not appear in messages."""

    name: str
    kind: str
    secrets: tuple[str, ...] = ()


@contextmanager
def translate_errors(store: StoreContext, path: str = "", *, writes: bool = False) -> Iterator[None]:
    """Raise ``DataException`` for the library's errors.

    FileNotFoundError passes unchanged, because only the caller knows if it is an error. During a write it means that
    the bucket does not exist, and is translated.
    """
    from obstore import exceptions

    try:
        yield
    except DataException:
        raise
    except FileNotFoundError as error:
        if writes and error.filename is None:
            raise _translate(store, path, error) from None
        raise
    except exceptions.PreconditionError:
        raise changed_file_error(f"{path} of datastore {store.name!r}") from None
    except (exceptions.BaseError, ValueError) as error:
        if _NO_RANGES in str(error):
            raise RangeNotSupported from error
        # `from None`: the library's own error contains URLs with their signatures
        raise _translate(store, path, error) from None
    except OSError as error:
        raise disk_error(error) from error


def _redact(store: StoreContext, text: str) -> str:
    for secret in store.secrets:
        if len(secret) > 3:
            text = text.replace(secret, MASK)
    return _SIGNATURE.sub(rf"\1{MASK}", text)


def _translate(store: StoreContext, path: str, error: Exception) -> DataException:
    from obstore import exceptions

    text = _redact(store, str(error).partition("\n\nDebug source")[0])
    code, message, status = (match[1] if (match := p.search(text)) else "" for p in (_CODE, _MESSAGE, _STATUS))
    reason = f"{code}: {message}" if code and message else code or text.strip()
    name = f"datastore {store.name!r}"
    if any(server in text for server in _METADATA_SERVERS):  # queried last, if no credentials were found before
        return DataException(
            f"{name} needs credentials: none were registered, none are in the yard's environment, and this machine is "
            "not a cloud instance that provides some",
            hint="pass them when you register it (--credentials on the command line), or anonymous=True (--anonymous) "
            "if it is public",
        )
    denied = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
    if isinstance(error, denied) or status in _ACCESS_DENIED:
        return DataException(f"{name} refuses the registered credentials: {reason}", hint=_REGISTER_AGAIN)
    malformed = next((credential for words, credential in _MALFORMED_CREDENTIALS.items() if words in text), None)
    if malformed is not None:
        return DataException(
            f"{name} was registered with an invalid {malformed}: {reason.partition(' error: ')[2] or reason}",
            hint=_REGISTER_AGAIN,
        )
    if code in ("NoSuchBucket", "ContainerNotFound"):
        return DataException(
            f"{name}: its bucket or container does not exist: {reason}", hint="create it, or register another one"
        )
    if isinstance(error, (exceptions.InvalidPathError, ValueError)):
        return DataException(f"{name} cannot have a file named {path!r}: {reason}", hint="use another name")
    if status.startswith("4") and status not in _RETRYABLE:
        return DataException(f"{name} refuses {path!r}: {reason}")
    return StoreUnreachable(f"{name} cannot be reached: {reason}", hint="check that its server and the network are up")
