"""Curated environments of the SDK v1, such as AzureML-PyTorch-1.4-GPU, mapped to current framework versions."""

from __future__ import annotations

import re

from runyard.errors import UserErrorException
from runyard.sdk.core import validation
from runyard.sdk.training.framework_versions import PYTORCH, SCIKIT_LEARN, TENSORFLOW
from runyard.spec.environment import Framework

NAMES = ("AzureML-Minimal", "AzureML-PyTorch-1.4-GPU", "AzureML-TensorFlow-2.1-GPU")
_FAMILIES = {
    "pytorch": PYTORCH,
    "tensorflow": TENSORFLOW,
    "scikit-learn": SCIKIT_LEARN,
    "sklearn": SCIKIT_LEARN,
    "tutorial": SCIKIT_LEARN,
}
# AzureML-PyTorch-1.4-GPU, or the later form AzureML-pytorch-1.7-ubuntu18.04-py37-cuda11-gpu-inference
_NAME_PATTERN = re.compile(
    rf"azureml-(minimal|{'|'.join(_FAMILIES)})"
    r"(?:-[\d.]+)?(?:-ubuntu[\d.]+)?(?:-py[\d.]+)?(?:-cuda[\d.]+)?(-cpu|-gpu)?(?:-inference)?",
    re.IGNORECASE,
)


def is_curated(name: str) -> bool:
    return isinstance(name, str) and name.lower().startswith("azureml-")


def resolve(name: str, *, quiet: bool = False) -> tuple[tuple[Framework, ...], bool]:
    """Return the frameworks of a curated environment and True if it is for GPUs.

    Args:
        name: Its name in the SDK v1.
        quiet: Do not log that the framework version differs.
    """
    match = _NAME_PATTERN.fullmatch(name)
    if not match:
        raise UserErrorException(
            f"no curated environment {name!r}",
            hint=f"the yard has {', '.join(NAMES)} and others of these families; or define your own",
        )
    family = _FAMILIES.get(match[1].lower())
    frameworks = (family.at(family.default),) if family else ()
    if family and not quiet:
        validation.log.warning("environment %s is replaced by %s %s", name, family.title, family.default)
    return frameworks, (match[2] or "").lower() == "-gpu"
