"""Environments that notebooks ask for by the name of a prebuilt one, answered by today's frameworks."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
_SHAPE = re.compile(  # AzureML-PyTorch-1.4-GPU; and later AzureML-pytorch-1.7-ubuntu18.04-py37-cuda11-gpu-inference
    rf"azureml-(minimal|{'|'.join(_FAMILIES)})"
    r"(?:-[\d.]+)?(?:-ubuntu[\d.]+)?(?:-py[\d.]+)?(?:-cuda[\d.]+)?(-cpu|-gpu)?(?:-inference)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Offer:
    frameworks: tuple[Framework, ...]
    gpu: bool


def is_curated(name: str) -> bool:
    return isinstance(name, str) and name.lower().startswith("azureml-")


def offer(name: str, *, quiet: bool = False) -> Offer:
    found = _SHAPE.fullmatch(name)
    if not found:
        raise UserErrorException(
            f"there is no prebuilt environment {name!r}",
            hint=f"the yard answers to {', '.join(NAMES)} and others of these families; or describe your own",
        )
    family = _FAMILIES.get(found[1].lower())
    frameworks = (family.at(family.default),) if family else ()
    if family and not quiet:
        validation.log.warning("environment %s is answered with %s %s", name, family.title, family.default)
    return Offer(frameworks, gpu=(found[2] or "").lower() == "-gpu")
