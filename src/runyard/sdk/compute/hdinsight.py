"""HDInsight clusters of the SDK v1, which only a cloud had."""

from __future__ import annotations

from typing import Any, Optional

from runyard.errors import ComputeTargetException
from runyard.sdk.compute.attached import AttachConfiguration
from runyard.sdk.compute.target import ComputeTarget


class HDInsightCompute(ComputeTarget):
    """A Spark cluster. Attaching one and looking one up raise ComputeTargetException, as scripts expect."""

    type = "HDInsight"

    @staticmethod
    def attach_configuration(
        username: str,
        subscription_id: Optional[str] = None,
        resource_group: Optional[str] = None,
        cluster_name: Optional[str] = None,
        resource_id: Optional[str] = None,
        address: Optional[str] = None,
        ssh_port: Any = "22",
        password: str = "",
        private_key_file: Any = "",
        private_key_passphrase: str = "",
    ) -> AttachConfiguration:
        """Return a configuration that ``ComputeTarget.attach`` refuses, which is where scripts expect an error."""
        settings = {"username": username, "address": address or cluster_name or resource_id}
        return AttachConfiguration(HDInsightCompute.type, settings)

    @staticmethod
    def attach(  # type: ignore[override]  # the SDK v1 has both signatures under one name
        workspace: Any,
        name: str,
        username: str,
        address: str,
        ssh_port: Any = "22",
        password: str = "",
        private_key_file: Any = "",
        private_key_passphrase: str = "",
    ) -> ComputeTarget:
        return ComputeTarget.attach(workspace, name, HDInsightCompute.attach_configuration(username, address=address))

    def get_credentials(self) -> dict[str, Optional[str]]:
        raise ComputeTargetException("Spark clusters are not available here, so there are no credentials")
