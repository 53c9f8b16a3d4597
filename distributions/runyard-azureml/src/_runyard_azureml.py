"""The door of `import azureml`, set up by `runyard-azureml.pth` when Python starts: it imports nothing by itself.

It is a finder and no package: a folder `azureml` of its own would mix with that of the real SDK, were it here too.
"""

import sys


class Door:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "azureml":
            return None
        from runyard.sdk.azureml import module_finder

        module_finder.refuse_beside_the_sdk()
        return module_finder.answer().find_spec(name)


sys.meta_path.insert(0, Door)
