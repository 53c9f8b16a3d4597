"""The keyword parameters of all estimators. This table is the only place where they are listed."""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING, Any, Callable, Optional, TypedDict, TypeVar

from runyard.sdk.core import validation
from runyard.sdk.environment.environment import Environment
from runyard.sdk.environment.sections import ContainerRegistry
from runyard.spec.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Collection

PARAMETER_SERVERS = ("worker_count", "parameter_server_count")
DISTRIBUTION = ("node_count", "process_count_per_node", "distributed_backend", "distributed_training")
_DEFAULTS = {
    "node_count": 1,
    "process_count_per_node": 1,
    "worker_count": 1,
    "parameter_server_count": 1,
    "use_gpu": False,
    "use_docker": True,
    "user_managed": False,
}  # the default of all others is None
# Options of the SDK v1's linting. Old scripts pass them; they have no effect on a run.
_LINT_OPTIONS = ("_enable_optimized_mode", "_disable_validation", "_show_lint_warnings", "_show_package_warnings")
_Init = TypeVar("_Init", bound=Callable[..., None])


class EstimatorParameters(TypedDict, total=False):
    """In the order of the signatures. An estimator class excludes those that it does not take."""

    compute_target: Any
    vm_size: Optional[str]
    vm_priority: Optional[str]
    entry_script: Any
    script_params: Optional[dict[str, Any]]
    node_count: int
    process_count_per_node: int
    worker_count: int
    parameter_server_count: int
    distributed_backend: Optional[str]
    distributed_training: Any
    use_gpu: bool
    use_docker: bool
    custom_docker_base_image: Optional[str]
    custom_docker_image: Optional[str]
    image_registry_details: Optional[ContainerRegistry]
    user_managed: bool
    conda_packages: Optional[list[str]]
    pip_packages: Optional[list[str]]
    conda_dependencies_file_path: Any
    pip_requirements_file_path: Any
    conda_dependencies_file: Any
    pip_requirements_file: Any
    environment_variables: Optional[dict[str, Any]]
    environment_definition: Optional[Environment]
    inputs: Optional[list[Any]]
    source_directory_data_store: Any
    shm_size: Optional[str]
    resume_from: Any
    max_run_duration_seconds: Optional[int]
    framework_version: Optional[str]
    resources: Optional[Resources]


def signature(*excluded: str) -> Callable[[_Init], _Init]:
    """Show a constructor's parameters to `inspect`, `help` and notebooks, which would see only ``**parameters``."""

    def decorate(init: _Init) -> _Init:
        kinds = inspect.Parameter
        types = {
            name: kind for name, kind in typing.get_type_hints(EstimatorParameters).items() if name not in excluded
        }
        keywords = [kinds(n, kinds.KEYWORD_ONLY, default=_DEFAULTS.get(n), annotation=t) for n, t in types.items()]
        first = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in ("self", "source_directory")]
        last = kinds("switches", kinds.VAR_KEYWORD, annotation=Any)
        setattr(init, "__signature__", inspect.Signature([*first, *keywords, last], return_annotation=None))  # noqa: B010
        init.__annotations__ = {"source_directory": Any, **types, "return": None}
        return init

    return decorate


def with_defaults(estimator: type, parameters: EstimatorParameters, excluded: Collection[str]) -> EstimatorParameters:
    """Return all parameters, and raise TypeError for a name that the estimator does not take."""
    names = [name for name in EstimatorParameters.__annotations__ if name not in excluded]
    for name in parameters:
        if name not in names and name not in _LINT_OPTIONS:
            raise TypeError(
                f"{estimator.__name__} has no parameter {name!r}: "
                f"{validation.did_you_mean(name, ['source_directory', *names])}"
                f"it takes source_directory, {', '.join(names)}"
            )
    complete: Any = {name: _DEFAULTS.get(name) for name in EstimatorParameters.__annotations__}
    complete.update(parameters)
    return typing.cast("EstimatorParameters", complete)
