"""Import hook of `import azureml`, installed by `runyard-azureml.pth` when Python starts.

It is a finder and not a package: a folder `azureml` would mix with that of the real SDK, if both are installed.
"""

import sys


class AzuremlFinder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "azureml":
            return None
        from runyard.sdk.azureml import module_finder

        module_finder.check_no_real_sdk()
        return module_finder.install().find_spec(name)


sys.meta_path.insert(0, AzuremlFinder)
