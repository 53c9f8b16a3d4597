"""Every error that a caller can catch.

    RunyardException                     message, hint, facts; the root of all of them
    ├── UserErrorException               the request itself is wrong
    │   ├── RunNotFound
    │   └── HomeUnusable                 the yard's folder cannot be used (not writable, path too long, disk full)
    ├── TrainingException                an estimator cannot be what it was asked to be
    ├── RunConfigurationException
    ├── ExperimentExecutionException     a submission was refused; nothing was started
    ├── EnvironmentException             the Python of a run could not be made
    ├── SnapshotException                the code of a run could not be frozen
    ├── ComputeTargetException
    ├── DataException                    a datastore does not give or take what it was asked for
    ├── RunEnvironmentException          asked for the submitted run outside of one
    ├── ActivityFailedException          the run that was waited for failed
    ├── HyperDriveException
    │   └── HyperDriveConfigException    a sweep cannot be what it was asked to be
    ├── WebserviceException              a model or a web service is not there, or cannot be what it was asked to be
    │   └── ModelInUse                   a model that something relies on was to be deleted
    ├── ModelNotFoundException           a scoring script has no such model beside it
    ├── ModelPathNotFoundException       there is nothing at the path of a model to register
    ├── OnnxExportException              a model could not be exported
    │   └── ParityFailed                 the exported model computes something else; ``report`` says where
    ├── YardUnavailable                  the yard does not answer and could not be started
    └── StoreCorrupted                   the yard's database is damaged; it was kept as it is

A message says what happened with the names involved; the hint says what to do next.
The names that end in ``Exception`` are those that scripts written for the SDK v1 catch.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any


class RunyardException(Exception):
    """The root: ``message`` says what happened, ``hint`` what to do next, ``facts`` carry the names involved."""

    def __init__(
        self, message: str = "", *, hint: str = "", inner_exception: BaseException | None = None, **facts: Any
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.inner_exception = inner_exception
        self.facts = facts

    shown_as_v1 = False  # True: in the lines that scripts written for the SDK v1 print, since its names were imported

    def __str__(self) -> str:
        if self.shown_as_v1:
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
            hint=rest.pop("hint", "use Run.get_context(), which gives an offline run here"),
            **rest,
        )


class ActivityFailedException(RunyardException):
    """A run that was waited for failed; ``error_details`` is the error of ``run.get_details()``."""

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
    """``report`` is what the comparison found: for each input and each output how far apart, and where."""

    def __init__(self, message: str = "", *, report: Any = None, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.report = report


class YardUnavailable(RunyardException):
    pass


class StoreCorrupted(RunyardException):
    pass
