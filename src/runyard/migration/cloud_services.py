"""Services that only Azure provides, by module, class, member and command."""

from __future__ import annotations

from runyard.sdk.azureml import refused
from runyard.sdk.azureml.refused import CLASSES, KEYS, RENAMED, SPARK, Service

__all__ = ["CLASSES", "COMMANDS", "MODULES", "RENAMED", "Service", "find_service"]

_STORAGE = Service("Azure's storage client", "use a datastore: ws.get_default_datastore(), or one that you register")
_LOGIN = Service("signing in to Azure", "remove it: a yard belongs to the user who started it")
_V2 = Service("the SDK v2", "Runyard has only the SDK v1")

MODULES = {
    **refused.MODULES,
    "azure.ai.ml": _V2,
    "azure.identity": _LOGIN,
    "azure.keyvault": KEYS,
    "azure.storage": _STORAGE,
    "azure.datalake": _STORAGE,
    "azure.mgmt": Service("resources of Azure", "remove it: there are no resources to manage"),
    "azure.cli": _LOGIN,
    "azure.common": _LOGIN,
    "msrest": _LOGIN,
    "msrestazure": _LOGIN,
}

COMMANDS = {
    "az": Service("Azure's command line", "remove it: there is no account; `runyard` is the command line here"),
    "azcopy": _STORAGE,
    "databricks": SPARK,
}


def find_service(path: str) -> Service | None:
    return refused.find_module(path, MODULES)
