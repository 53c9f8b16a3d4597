"""What Azure did and nothing here does: by module, class, member and command."""

from __future__ import annotations

from runyard.sdk.azureml import refused
from runyard.sdk.azureml.refused import CLASSES, KEYS, RENAMED, SPARK, Service

__all__ = ["CLASSES", "COMMANDS", "MEMBERS", "MODULES", "RENAMED", "Service", "of_module"]

_STORAGE = Service(
    "Azure's storage by its own client", "a datastore: ws.get_default_datastore(), or one registered under a name"
)
_LOGIN = Service("signing in to Azure", "leave it out: a yard is opened by the user who owns it")
_V2 = Service("the SDK v2", "only the SDK v1 is here")

MODULES = {
    **refused.MODULES,
    "azure.ai.ml": _V2,
    "azure.identity": _LOGIN,
    "azure.keyvault": KEYS,
    "azure.storage": _STORAGE,
    "azure.datalake": _STORAGE,
    "azure.mgmt": Service("resources of Azure", "there are none to manage"),
    "azure.cli": _LOGIN,
    "azure.common": _LOGIN,
    "msrest": _LOGIN,
    "msrestazure": _LOGIN,
}

MEMBERS = {
    "Workspace.get_default_keyvault": KEYS,
}

COMMANDS = {
    "az": Service("Azure's command line", "leave it out: there is no account, and `runyard` is the command line here"),
    "azcopy": _STORAGE,
    "databricks": SPARK,
}


def of_module(path: str) -> Service | None:
    return refused.find_module(path, MODULES)
