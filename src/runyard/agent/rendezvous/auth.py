"""Mutual authentication of two agents by the run's secret, and of every frame between them. Pure.

The lead sends a challenge, the member a hello, the lead a welcome: three messages of fixed size, so that nothing is
parsed before the sender has proved that it knows the secret, which is never sent. As in the PSK mode of TLS 1.3, keys
and proofs are derived with HKDF from the secret and a hash of all bytes exchanged so far; frames are protected as by
the integrity-only cipher suites of TLS 1.3 (RFC 9150). Frames are not encrypted.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from dataclasses import dataclass
from typing import Optional

_PROTOCOL = b"runyard rendezvous 2"
_MAGIC = b"runyard2"
_NONCE_BYTES = 32
MAC_BYTES = 32

_HELLO_FIELDS = struct.Struct(f">IQ{_NONCE_BYTES}s")  # rank of the node, last message received, nonce
_WELCOME_FIELDS = struct.Struct(">Q")  # last message received
CHALLENGE_BYTES = len(_MAGIC) + _NONCE_BYTES
HELLO_BYTES = _HELLO_FIELDS.size + MAC_BYTES
WELCOME_BYTES = _WELCOME_FIELDS.size + MAC_BYTES

FRAME_HEADER = struct.Struct(">I")  # bytes of the payload, which is followed by its authentication code
_SEQUENCE_NUMBER = struct.Struct(">Q")


class AuthenticationError(Exception):
    """The other side is not an agent of this run."""


@dataclass(frozen=True)
class Credentials:
    """The values that all agents of one attempt share."""

    run_id: str
    attempt: int
    secret: str


@dataclass(frozen=True)
class Hello:
    """The authenticated content of a member's hello."""

    node_rank: int
    received: int  # number of the last message that the member has received over earlier connections


class LeadHandshake:
    """The lead's side of the handshake on one connection."""

    def __init__(self, credentials: Credentials) -> None:
        self._keys = _KeySchedule(credentials)
        self.challenge = _MAGIC + os.urandom(_NONCE_BYTES)

    def verify(self, hello: bytes) -> Hello:
        """Raises AuthenticationError."""
        fields, proof = hello[: _HELLO_FIELDS.size], hello[_HELLO_FIELDS.size :]
        self._keys.add(self.challenge, fields)
        if not hmac.compare_digest(proof, self._keys.derive("member proof")):
            raise AuthenticationError("another run, another attempt or another secret")
        self._keys.add(proof)
        node_rank, received, _ = _HELLO_FIELDS.unpack(fields)
        return Hello(node_rank, received)

    def welcome(self, received: int) -> bytes:
        """The reply to a verified hello. ``received``: number of the last message from this member."""
        fields = _WELCOME_FIELDS.pack(received)
        self._keys.add(fields)
        return fields + self._keys.derive("lead proof")

    def frame_keys(self) -> tuple[FrameKey, FrameKey]:
        """The keys for sending and for receiving."""
        return FrameKey(self._keys.derive("lead frames")), FrameKey(self._keys.derive("member frames"))


class MemberHandshake:
    """A member's side of the handshake on one connection."""

    def __init__(self, credentials: Credentials, node_rank: int, received: int) -> None:
        self._keys = _KeySchedule(credentials)
        self._fields = _HELLO_FIELDS.pack(node_rank, received, os.urandom(_NONCE_BYTES))

    def hello(self, challenge: bytes) -> bytes:
        """The reply to the lead's challenge. Raises AuthenticationError."""
        if not challenge.startswith(_MAGIC):
            raise AuthenticationError("the process at that address is not an agent")
        self._keys.add(challenge, self._fields)
        proof = self._keys.derive("member proof")
        self._keys.add(proof)
        return self._fields + proof

    def verify(self, welcome: bytes) -> int:
        """Number of the last message that the lead has received. Raises AuthenticationError."""
        fields, proof = welcome[: _WELCOME_FIELDS.size], welcome[_WELCOME_FIELDS.size :]
        self._keys.add(fields)
        if not hmac.compare_digest(proof, self._keys.derive("lead proof")):
            raise AuthenticationError("the process at that address is not the lead of this run")
        return int(_WELCOME_FIELDS.unpack(fields)[0])

    def frame_keys(self) -> tuple[FrameKey, FrameKey]:
        """The keys for sending and for receiving."""
        return FrameKey(self._keys.derive("member frames")), FrameKey(self._keys.derive("lead frames"))


class FrameKey:
    """Authenticates the frames of one connection in one direction. Frames are counted, so that none can be repeated,
    omitted or reordered."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._count = 0

    def seal(self, payload: bytes) -> bytes:
        return FRAME_HEADER.pack(len(payload)) + payload + self._code(payload)

    def open(self, payload: bytes, code: bytes) -> Optional[bytes]:
        """The payload; None if it was not sent by the other side as its next frame."""
        return payload if hmac.compare_digest(code, self._code(payload)) else None

    def _code(self, payload: bytes) -> bytes:
        prefix = _SEQUENCE_NUMBER.pack(self._count) + FRAME_HEADER.pack(len(payload))
        self._count += 1
        return hmac.digest(self._key, prefix + payload, "sha256")


class _KeySchedule:
    """Derives proofs and keys from the secret and the bytes exchanged so far (RFC 5869, RFC 8446 section 7.1)."""

    def __init__(self, credentials: Credentials) -> None:
        self._secret = hmac.digest(_PROTOCOL, credentials.secret.encode(), "sha256")  # HKDF-Extract
        self._transcript = hashlib.sha256()
        self.add(credentials.run_id.encode(), b"%d" % credentials.attempt)

    def add(self, *parts: bytes) -> None:
        for part in parts:
            self._transcript.update(FRAME_HEADER.pack(len(part)) + part)

    def derive(self, label: str) -> bytes:
        """HKDF-Expand to one block."""
        return hmac.digest(self._secret, label.encode() + b"\0" + self._transcript.digest() + b"\1", "sha256")
