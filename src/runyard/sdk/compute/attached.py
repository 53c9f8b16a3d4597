"""Attached machines: a Slurm partition, several SSH hosts, or one SSH host."""

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
    """Settings for ``ComputeTarget.attach``; created by ``attach_configuration`` of one of the classes below."""

    kind: str
    configuration: dict[str, Any]


class SlurmCompute(ComputeTarget):
    """A partition of a Slurm cluster: each run is a batch job in Slurm's queue."""

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
        """Return the settings for ``ComputeTarget.attach``.

        Args:
            partition: Name of the partition.
            login: Login node as ``user@host``. Without it, the Slurm commands of the yard's machine are used, and the
                yard's home folder must be on a file system that the nodes share.
            account: Slurm account to charge.
            qos: Quality of service.
            constraint: Node features that jobs need.
            options: Further flags of sbatch, such as ``["--exclusive", "--gres=gpu:a100:2"]``.
            folder: Runyard's folder on the login node.
        """
        if not partition or not isinstance(partition, str):
            raise validation.invalid("partition", partition, "the name of a partition", error=ComputeTargetException)
        texts = {"account": account, "qos": qos, "constraint": constraint, "login": login, "folder": folder}
        configuration: dict[str, Any] = {"partition": partition}
        for parameter, value in texts.items():
            if validation.text(parameter, value, error=ComputeTargetException):
                configuration[parameter] = value
        words = shlex.split(options) if isinstance(options, str) else list(options)
        if any(not isinstance(word, str) for word in words):
            raise validation.invalid("options", options, "flags of sbatch as texts", error=ComputeTargetException)
        if words:
            configuration["options"] = words
        return AttachConfiguration(SlurmCompute.type, configuration)


class SshCompute(ComputeTarget):
    """Hosts reachable with SSH. Runs share their processors; a multi-node run uses one host per node."""

    type = "Ssh"

    @staticmethod
    def attach_configuration(
        hosts: Union[str, Iterable[str]],
        key: Optional[Any] = None,
        folder: Optional[str] = None,
        slots: Optional[int] = None,
    ) -> AttachConfiguration:
        """Return the settings for ``ComputeTarget.attach``.

        Args:
            hosts: Hosts as in ssh's command line: ``["me@h1", "me@h2:2222", "name-in-ssh_config"]``.
            key: File of the private key, if ssh does not find it without.
            folder: Runyard's folder on each host; default: ``~/.runyard-host``.
            slots: Number of processors of each host that runs may use; default: all.
        """
        names = [hosts] if isinstance(hosts, str) else list(hosts)
        if not names or any(not isinstance(host, str) or not host for host in names):
            raise validation.invalid("hosts", hosts, "hosts as texts: ['me@h1', 'me@h2']", error=ComputeTargetException)
        configuration: dict[str, Any] = {"hosts": names}
        if key is not None:
            configuration["key"] = _key_file("key", key)
        if validation.text("folder", folder, error=ComputeTargetException):
            configuration["folder"] = folder
        if slots is not None:
            configuration["slots"] = validation.count("slots", slots, error=ComputeTargetException)
        return AttachConfiguration(SshCompute.type, configuration)


class RemoteCompute(ComputeTarget):
    """One SSH host, under its class name of the SDK v1."""

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
        """Return the settings for ``ComputeTarget.attach``.

        Args:
            username: User to log in as.
            address: Host name or IP address; required. Parameters that identify a VM of the cloud have no effect.
            ssh_port: Port of the SSH server, as a number or text.
            private_key_file: File of the private key, if ssh does not find it without.
            password: Not accepted; use a key.
            private_key_passphrase: Not accepted; use ssh-add.
        """
        if not address or not isinstance(address, str):
            raise validation.invalid("address", address, "a host name or an IP address", error=ComputeTargetException)
        if not username or not isinstance(username, str):
            raise validation.invalid("username", username, "a name to log in with", error=ComputeTargetException)
        for parameter, value in (("password", password), ("private_key_passphrase", private_key_passphrase)):
            if value:  # it would have to be stored in clear text until the next run
                raise ComputeTargetException(
                    f"{parameter} cannot be stored",
                    hint=f"ssh-copy-id {username}@{address} installs your key; ssh-add unlocks one with a passphrase",
                )
        # published notebooks write the number as text
        port = int(ssh_port) if isinstance(ssh_port, str) and ssh_port.isdecimal() else ssh_port
        port = validation.count("ssh_port", port, error=ComputeTargetException)
        host = f"{username}@{address}" + (f":{port}" if port != 22 else "")
        key = {"key": _key_file("private_key_file", private_key_file)} if private_key_file else {}
        cloud = {"subscription_id": subscription_id, "resource_group": resource_group, "vm_name": vm_name}
        caller, reason = "RemoteCompute.attach_configuration", "address identifies the machine"
        for argument, name in {**cloud, "resource_id": resource_id}.items():
            no_effect.warn_ignored(caller, argument, name, reason)
        return AttachConfiguration(RemoteCompute.type, {"hosts": [host], **key})

    @staticmethod
    def attach(  # type: ignore[override]  # the SDK v1 has both signatures under one name
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
        configuration = attach_configuration or RemoteCompute.attach_configuration(
            str(username or ""),
            address=address,
            ssh_port=ssh_port,
            password=password,
            private_key_file=private_key_file,
            private_key_passphrase=private_key_passphrase,
        )
        return ComputeTarget.attach(workspace, name, configuration)

    def get_credentials(self) -> dict[str, Optional[str]]:
        """Return the user name; passwords and keys are not stored."""
        user = str(self._view["configuration"]["hosts"][0]).partition("@")[0]
        return {"username": user, "password": None, "publicKey": None, "privateKey": None}


def _key_file(parameter: str, value: Any) -> str:
    path = Path(validation.path(parameter, value, error=ComputeTargetException) or "").expanduser().absolute()
    if not path.is_file():
        raise ComputeTargetException(f"{parameter}: no file {path}", hint="pass the private key, not its .pub file")
    return str(path)
