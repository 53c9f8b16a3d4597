"""Machines of your own, attached by name: a Slurm partition, a few hosts with SSH, or one such host."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from runyard.errors import ComputeTargetException
from runyard.sdk.azureml import no_effect
from runyard.sdk.compute.target import ComputeTarget
from runyard.sdk.core import validation


@dataclass(frozen=True)
class AttachConfiguration:
    """What ``ComputeTarget.attach`` takes: made by ``attach_configuration`` of one of the classes here."""

    kind: str
    configuration: dict[str, Any]


class AttachedTarget(ComputeTarget):
    """It was there before, and stays there when it is detached: only its name goes."""


class SlurmCompute(AttachedTarget):
    """A partition of a Slurm cluster: each run is a batch job, and waits in Slurm's own line."""

    type = "Slurm"

    @staticmethod
    def attach_configuration(
        partition: str,
        login: Optional[str] = None,
        account: Optional[str] = None,
        qos: Optional[str] = None,
        constraint: Optional[str] = None,
        options: Union[str, Iterable[str]] = (),
        folder: Optional[str] = None,
    ) -> AttachConfiguration:
        """``options`` are further flags of sbatch, as they are written: ``["--exclusive", "--gres=gpu:a100:2"]``.

        Without a ``login`` node (``user@host``), Slurm's commands are those of the yard's own machine, and its home
        folder must be on a file system that the nodes share. ``folder`` is Runyard's on the login node.
        """
        if not partition or not isinstance(partition, str):
            raise validation.wrong("partition", partition, "the name of a partition", error=ComputeTargetException)
        texts = {"account": account, "qos": qos, "constraint": constraint, "login": login, "folder": folder}
        found: dict[str, Any] = {"partition": partition}
        for parameter, value in texts.items():
            if validation.text(parameter, value, error=ComputeTargetException):
                found[parameter] = value
        words = shlex.split(options) if isinstance(options, str) else list(options)
        if any(not isinstance(word, str) for word in words):
            raise validation.wrong("options", options, "flags of sbatch as texts", error=ComputeTargetException)
        if words:
            found["options"] = words
        return AttachConfiguration(SlurmCompute.type, found)


class SshCompute(AttachedTarget):
    """A few hosts that you can log in to: runs share their processors, a run of several nodes takes a host for each."""

    type = "Ssh"

    @staticmethod
    def attach_configuration(
        hosts: Union[str, Iterable[str]],
        key: Optional[Any] = None,
        folder: Optional[str] = None,
        slots: Optional[int] = None,
    ) -> AttachConfiguration:
        """``hosts`` as you would give them to ssh: ``["me@h1", "me@h2:2222", "a-name-in-ssh_config"]``.

        ``key`` is a private key's file where ssh would not find it by itself; ``folder`` is Runyard's on each host
        (default: ``~/.runyard-host``); ``slots`` says how many processors of a host runs may use (default: all).
        """
        named = [hosts] if isinstance(hosts, str) else list(hosts)
        if not named or any(not isinstance(host, str) or not host for host in named):
            raise validation.wrong("hosts", hosts, "hosts as texts: ['me@h1', 'me@h2']", error=ComputeTargetException)
        found: dict[str, Any] = {"hosts": named}
        if key is not None:
            found["key"] = _key_file("key", key)
        if validation.text("folder", folder, error=ComputeTargetException):
            found["folder"] = folder
        if slots is not None:
            found["slots"] = validation.count("slots", slots, error=ComputeTargetException)
        return AttachConfiguration(SshCompute.type, found)


class RemoteCompute(AttachedTarget):
    """One machine with SSH, by the name that the SDK v1 has for it."""

    type = "Remote"

    @staticmethod
    def attach_configuration(
        username: str,
        subscription_id: Optional[str] = None,
        resource_group: Optional[str] = None,
        vm_name: Optional[str] = None,
        resource_id: Optional[str] = None,
        address: Optional[str] = None,
        ssh_port: Any = 22,
        password: str = "",
        private_key_file: Any = "",
        private_key_passphrase: str = "",
    ) -> AttachConfiguration:
        """``address`` is where the machine is; what named one of the cloud has no effect."""
        if not address or not isinstance(address, str):
            raise validation.wrong("address", address, "the name or number of a host", error=ComputeTargetException)
        if not username or not isinstance(username, str):
            raise validation.wrong("username", username, "a name to log in with", error=ComputeTargetException)
        for parameter, value in (("password", password), ("private_key_passphrase", private_key_passphrase)):
            if value:  # it would have to be kept, in clear, to be there at the next run
                raise ComputeTargetException(
                    f"{parameter} cannot be kept",
                    hint=f"ssh-copy-id {username}@{address} lets your key in; ssh-add unlocks one with a passphrase",
                )
        # published notebooks write the number as text
        port = int(ssh_port) if isinstance(ssh_port, str) and ssh_port.isdecimal() else ssh_port
        port = validation.count("ssh_port", port, error=ComputeTargetException)
        host = f"{username}@{address}" + (f":{port}" if port != 22 else "")
        key = {"key": _key_file("private_key_file", private_key_file)} if private_key_file else {}
        cloud = {"subscription_id": subscription_id, "resource_group": resource_group, "vm_name": vm_name}
        for argument, named in {**cloud, "resource_id": resource_id}.items():
            no_effect.told("RemoteCompute.attach_configuration", argument, named, "address says which machine it is")
        return AttachConfiguration(RemoteCompute.type, {"hosts": [host], **key})

    @staticmethod
    def attach(  # type: ignore[override]  # the SDK v1 has both, under one name
        workspace: Any,
        name: str,
        username: Optional[str] = None,
        address: Optional[str] = None,
        ssh_port: Any = 22,
        password: str = "",
        private_key_file: Any = "",
        private_key_passphrase: str = "",
        attach_configuration: Optional[AttachConfiguration] = None,
    ) -> ComputeTarget:
        given = attach_configuration or RemoteCompute.attach_configuration(
            str(username or ""),
            address=address,
            ssh_port=ssh_port,
            password=password,
            private_key_file=private_key_file,
            private_key_passphrase=private_key_passphrase,
        )
        return ComputeTarget.attach(workspace, name, given)

    def get_credentials(self) -> dict[str, Optional[str]]:
        """Who logs in; there is no password, and the key stays where it is."""
        user = str(self._view["configuration"]["hosts"][0]).partition("@")[0]
        return {"username": user, "password": None, "publicKey": None, "privateKey": None}


def _key_file(parameter: str, given: Any) -> str:
    path = Path(validation.path(parameter, given, error=ComputeTargetException) or "").expanduser().absolute()
    if not path.is_file():
        raise ComputeTargetException(f"{parameter}: there is no file {path}", hint="name the private key, not its .pub")
    return str(path)
