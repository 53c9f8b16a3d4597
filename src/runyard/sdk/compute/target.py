"""Compute targets by name. The yard's machine is always available as ``local``."""

from __future__ import annotations

import builtins
from dataclasses import asdict
from typing import Any, Optional

from runyard.errors import ComputeTargetException, UserErrorException
from runyard.sdk.azureml import no_effect
from runyard.sdk.core import validation

COMPUTES = "/api/computes"
_RESERVED = ("amlcompute", "local", "containerinstance")


class ComputeTarget:
    """A machine or a cluster that runs are submitted to.

    ``ComputeTarget(workspace, name)`` returns the target of that name as an instance of its subclass.

    Args:
        workspace: The workspace that contains the target.
        name: Name of the target.

    Raises:
        ComputeTargetException: No target has this name, or it is of another type than the class called.
    """

    type: str = "ComputeTarget"
    workspace: Any
    name: str
    provisioning_state: str
    _view: dict[str, Any]

    def __new__(cls, workspace: Any, name: str) -> ComputeTarget:
        if not isinstance(name, str) or not name or "/" in name:
            raise validation.invalid(
                "the name of a compute target", name, "text such as 'local'", error=ComputeTargetException
            )
        target = ComputeTarget._from_view(workspace, workspace.connection.get(f"{COMPUTES}/{name}"))
        if not isinstance(target, cls):
            raise ComputeTargetException(
                f"compute target {name!r} is of type {target.type}, not {cls.__name__}",
                hint=f"ComputeTarget(workspace, {name!r}) returns it as its own type",
            )
        return target

    def __init__(self, workspace: Any, name: str) -> None:
        """Do nothing: ``__new__`` has set the attributes."""

    @staticmethod
    def create(workspace: Any, name: str, provisioning_configuration: Any) -> ComputeTarget:
        """Create a cluster.

        Args:
            workspace: The workspace to create it in.
            name: Name of the new target.
            provisioning_configuration: Result of ``AmlCompute.provisioning_configuration(...)``.

        Raises:
            UserErrorException: The name is reserved.
        """
        from runyard.sdk.compute.amlcompute import AmlCompute, AmlComputeProvisioning

        if not isinstance(provisioning_configuration, AmlComputeProvisioning):
            raise validation.invalid(
                "provisioning_configuration",
                provisioning_configuration,
                "the result of AmlCompute.provisioning_configuration(…)",
                error=ComputeTargetException,
            )
        notes = [asdict(note) for note in no_effect.notes_of(provisioning_configuration)]
        configuration = {**asdict(provisioning_configuration), **({"no_effect": notes} if notes else {})}
        return ComputeTarget._create(workspace, name, AmlCompute.type, configuration)

    @staticmethod
    def attach(
        workspace: Any,
        name: str,
        attach_configuration: Any = None,
        *,
        attach_config: Any = None,
        kind: Optional[str] = None,
        options: Optional[dict[str, Any]] = None,
    ) -> ComputeTarget:
        """Attach existing machines under a name.

        Args:
            workspace: The workspace to attach them to.
            name: Name of the new target.
            attach_configuration: Result of ``attach_configuration(...)`` of ``SlurmCompute``, ``SshCompute`` or
                ``RemoteCompute``.
            attach_config: Same; a spelling that a published notebook uses.
            kind: Instead of a configuration: a kind of target by name, for example one that an installed package
                provides.
            options: Options of that kind.

        Raises:
            ComputeTargetException: The machines cannot be used.
        """
        from runyard.sdk.compute.hdinsight import HDInsightCompute

        attachment = attach_configuration if attach_configuration is not None else attach_config
        if kind is not None and attachment is None:
            return ComputeTarget._create(workspace, name, validation.text("kind", kind), dict(options or {}))
        if not isinstance(getattr(attachment, "kind", None), str):
            raise validation.invalid(
                "attach_configuration",
                attachment,
                "the result of SlurmCompute, SshCompute or RemoteCompute.attach_configuration(…)",
                error=ComputeTargetException,
            )
        if attachment.kind == HDInsightCompute.type:
            raise ComputeTargetException(
                f"{name!r} cannot be attached: runs on Spark and HDInsight are not available here",
                hint="submit the script to another target, with pyspark in its pip_packages",
            )
        return ComputeTarget._create(workspace, name, attachment.kind, attachment.configuration)

    @staticmethod
    def _create(workspace: Any, name: str, kind: Any, configuration: dict[str, Any]) -> ComputeTarget:
        if isinstance(name, str) and name.lower() in _RESERVED:
            raise UserErrorException(f"a compute target cannot be named {name!r}", hint="choose another name")
        body = {"name": name, "kind": kind, "configuration": configuration}
        return ComputeTarget._from_view(workspace, workspace.connection.post(COMPUTES, body))

    @staticmethod
    def list(workspace: Any) -> builtins.list[ComputeTarget]:
        """Return all targets of the workspace."""
        return [ComputeTarget._from_view(workspace, view) for view in workspace.connection.get(COMPUTES)]

    def refresh_state(self) -> None:
        """Read the state of the target from the yard."""
        self._update(self.workspace, self.workspace.connection.get(f"{COMPUTES}/{self.name}"))

    def get_status(self) -> Any:
        """Return the current status of the target."""
        self.refresh_state()
        return self._view["status"]

    def wait_for_completion(self, show_output: bool = False, is_delete_operation: bool = False) -> None:
        """Return immediately: a target is ready as soon as the yard lists it."""

    def delete(self) -> None:
        """Remove the target from the yard."""
        self.workspace.connection.delete(f"{COMPUTES}/{self.name}")

    def detach(self) -> None:
        """Remove the name from the yard; the machines are not changed."""
        self.delete()

    def serialize(self) -> dict[str, Any]:
        return dict(self._view)

    @staticmethod
    def deserialize(workspace: Any, object_dict: dict[str, Any]) -> ComputeTarget:
        """Return the target that :meth:`serialize` described, without a request to the yard."""
        missing = [key for key in ("name", "kind", "configuration") if key not in (object_dict or {})]
        if missing:
            raise ComputeTargetException(f"cannot create a compute target from a dict without {', '.join(missing)}")
        return ComputeTarget._from_view(workspace, {"created_at": None, "status": {}, **object_dict})

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, workspace={self.workspace!r})"

    @staticmethod
    def _from_view(workspace: Any, view: dict[str, Any]) -> ComputeTarget:
        from runyard.sdk.compute.amlcompute import AmlCompute, BatchAiCompute, DsvmCompute
        from runyard.sdk.compute.attached import RemoteCompute, SlurmCompute, SshCompute

        classes = (LocalTarget, AmlCompute, BatchAiCompute, DsvmCompute, SlurmCompute, SshCompute, RemoteCompute)
        kind = view["configuration"].get("made_as") or view["kind"]
        # __new__ of the class would send another request to the yard
        target = object.__new__({cls.type: cls for cls in classes}.get(kind, ComputeTarget))
        target._update(workspace, view)
        return target

    def _update(self, workspace: Any, view: dict[str, Any]) -> None:
        self.workspace, self.name, self._view = workspace, view["name"], view
        self.type = view["configuration"].get("made_as") or view["kind"]
        self.provisioning_state = "Succeeded"


class LocalTarget(ComputeTarget):
    """The machine that the yard runs on."""

    type = "Local"
