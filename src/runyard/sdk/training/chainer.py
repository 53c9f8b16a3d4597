"""The Chainer estimator. Chainer has no wheels and can no longer be built, so the user must provide it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runyard.errors import TrainingException
from runyard.sdk.training.build_spec import Submission
from runyard.sdk.training.framework_versions import KnownFramework
from runyard.sdk.training.frameworks import FrameworkEstimator
from runyard.sdk.training.parameters import PARAMETER_SERVERS, EstimatorParameters, signature
from runyard.spec.environment import Framework

if TYPE_CHECKING:
    from typing_extensions import Unpack

CHAINER = KnownFramework(title="Chainer", name="chainer", versions=("5.1.0", "7.0.0"), default="5.1.0")


class Chainer(FrameworkEstimator):
    """A Chainer script, in a Python or container image that already has Chainer."""

    FRAMEWORK_NAME = "Chainer"
    DEFAULT_VERSION = CHAINER.default
    _known = CHAINER
    _backends = ("mpi",)

    @signature(*PARAMETER_SERVERS)
    def __init__(self, source_directory: Any, **parameters: Unpack[EstimatorParameters]) -> None:
        super().__init__(source_directory, **parameters)
        self._is_provided = bool(
            parameters.get("user_managed")
            or parameters.get("environment_definition") is not None
            or parameters.get("custom_docker_image")
        )

    def _frameworks(self) -> tuple[Framework, ...]:
        return ()

    def _submission(self, **overrides: Any) -> Submission:
        if not self._is_provided:
            raise TrainingException(
                "Chainer cannot be installed: its last release has no wheel, and needs an outdated setuptools",
                hint="user_managed=True in a Python that has it, or custom_docker_image; its authors moved to PyTorch",
            )
        return super()._submission(**overrides)
