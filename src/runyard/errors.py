"""All exceptions that Runyard raises.

    RunyardException                     base class: message, hint, facts
    ├── UserErrorException               the request is invalid
    │   ├── RunNotFound
    │   └── HomeUnusable                 the home folder cannot be used (not writable, path too long, disk full)
    ├── TrainingException                invalid estimator parameters
    ├── RunConfigurationException
    ├── ExperimentExecutionException     a submission was rejected; nothing was started
    ├── EnvironmentException             the Python environment of a run could not be built
    ├── SnapshotException                the snapshot of a run's code could not be created
    ├── ComputeTargetException
    ├── DataException                    a datastore could not be read or written
    ├── RunEnvironmentException          this process is not part of a submitted run
    ├── ActivityFailedException          wait_for_completion: the run failed
    ├── HyperDriveException
    │   └── HyperDriveConfigException    invalid sweep configuration
    ├── WebserviceException              a model or web service does not exist, or is invalid
    │   └── ModelInUse                   a model cannot be deleted because it is in use
    ├── ModelNotFoundException           a scoring script's model was not found
    ├── ModelPathNotFoundException       the path of a model to register does not exist
    ├── OnnxExportException              a model could not be exported
    │   └── ParityFailed                 the outputs of the exported model differ; see ``report``
    ├── SecretsUnreadable                stored secrets cannot be decrypted: the key is missing or another one
    ├── YardUnavailable                  the yard does not respond and could not be started
    ├── FileCorrupted                    a stored file is missing or has another content than was stored
    └── StoreCorrupted                   the yard's database is damaged or missing; it was left unchanged

The message states what happened and names the objects involved; the hint states what to do next.
Names that end in ``Exception`` are those of SDK v1, which existing scripts catch.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing takes longer than this module
if TYPE_CHECKING:
    from typing import Any


class RunyardException(Exception):
    """Base class of all exceptions.

    Attributes:
        message: What happened.
        hint: What to do next; may be empty.
        inner_exception: The underlying exception, as in SDK v1.
        facts: Names and values involved, for programs.
    """

    def __init__(
        self, message: str = "", *, hint: str = "", inner_exception: BaseException | None = None, **facts: Any
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.inner_exception = inner_exception
        self.facts = facts

    format_as_v1 = False  # True once `azureml` names were imported: format messages as SDK v1 does

    def __str__(self) -> str:
        if self.format_as_v1:
            return self._as_v1()
        return f"{self.message}\n\nhint: {self.hint}" if self.hint else self.message

    def print_stacktrace(self) -> None:
        import traceback

        traceback.print_exception(type(self), self, self.__traceback__)

    def _as_v1(self) -> str:
        import json

        error = {"error": {"code": self._code, "message": self.message}}
        name = "AzureMLException" if type(self) is RunyardException else type(self).__name__
        lines = [f"{name}:", f"\tMessage: {self.message}"]
        if self.hint:
            lines.append(f"\tHint: {self.hint}")
        lines.append(f"\tInnerException {self.inner_exception}")
        return "\n".join([*lines, f"\tErrorResponse \n{json.dumps(error, indent=4, default=str)}"])

    @property
    def _code(self) -> str:
        return "UserError" if isinstance(self, UserErrorException) else type(self).__name__


class UserErrorException(RunyardException):
    pass


class RunNotFound(UserErrorException):
    pass


class HomeUnusable(UserErrorException):
    pass


class TrainingException(RunyardException):
    pass


class RunConfigurationException(RunyardException):
    pass


class ExperimentExecutionException(RunyardException):
    pass


class EnvironmentException(RunyardException):
    pass


class SnapshotException(RunyardException):
    pass


class ComputeTargetException(RunyardException):
    pass


class DataException(RunyardException):
    pass


class RunEnvironmentException(RunyardException):
    def __init__(self, message: str = "", **rest: Any) -> None:
        super().__init__(
            message or "this process is not part of a submitted run",
            hint=rest.pop("hint", "use Run.get_context(), which returns an offline run outside of submitted runs"),
            **rest,
        )


class ActivityFailedException(RunyardException):
    """The run failed; ``error_details`` is the error of ``run.get_details()``."""

    def __init__(self, error_details: Any = "", **rest: Any) -> None:
        message = error_details if isinstance(error_details, str) else str(error_details.get("message", error_details))
        super().__init__(message, **rest)
        self.error_details = error_details


class HyperDriveException(RunyardException):
    pass


class HyperDriveConfigException(HyperDriveException):
    pass


class WebserviceException(RunyardException):
    pass


class ModelInUse(WebserviceException):
    pass


class ModelNotFoundException(RunyardException):
    pass


class ModelPathNotFoundException(RunyardException):
    pass


class OnnxExportException(RunyardException):
    pass


class ParityFailed(OnnxExportException):
    """The outputs differ; ``report`` contains the largest difference for each input and output."""

    def __init__(self, message: str = "", *, report: Any = None, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.report = report


class SecretsUnreadable(RunyardException):
    pass


class YardUnavailable(RunyardException):
    pass


class FileCorrupted(RunyardException):
    pass


class StoreCorrupted(RunyardException):
    pass
