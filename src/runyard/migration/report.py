"""What reading a project for the SDK v1 came to: values, and their shape as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

ERROR, WARNING, NOTE = "error", "warning", "note"
RUNS, ATTENTION, UNREADABLE = "runs", "attention", "unreadable"

RULES = {
    "syntax": "Python cannot read it: the rest of the cell or file is not looked at",
    "unknown-name": "a name of the SDK that is not here",
    "unknown-keyword": "a keyword that the callable does not take, or no longer takes",
    "azure-only": "a service of Azure, or a program that talks to one",
    "other-sdk": "an installation that would bring the retired SDK in place of this one",
    "framework-version": "a version of a framework that no Python of today can install",
    "tensorflow-1": "names that TensorFlow 2 does not have",
    "numpy-removed": "a name that NumPy removed",
    "package-removed": "a module or name that a package removed, or a package that is no longer released",
    "dead-download": "a download from a host that no longer serves it",
    "azure-storage": "a download from a storage account, which its owner may have closed",
    "gpu-only": "code that needs a GPU to start",
    "surprise": "code that runs, and does not do what it seems to",
}


@dataclass(frozen=True)
class Finding:
    rule: str
    severity: str
    name: str  # what was found, as it is written: tf.Session
    message: str
    remedy: str = ""
    line: int = 1  # of the file, or of the cell
    cell: int | None = None  # of a notebook, counted from 1 over all its cells


@dataclass(frozen=True)
class FileReport:
    path: str
    kind: str  # "script", "notebook"
    findings: tuple[Finding, ...]
    sdk_names: tuple[str, ...]  # of the SDK, used and here

    @property
    def verdict(self) -> str:
        if any(finding.rule == "syntax" for finding in self.findings) and self.kind == "script":
            return UNREADABLE
        return ATTENTION if any(finding.severity != NOTE for finding in self.findings) else RUNS


@dataclass(frozen=True)
class Report:
    path: str
    files: tuple[FileReport, ...]

    def of(self, verdict: str) -> list[FileReport]:
        return [file for file in self.files if file.verdict == verdict]

    def as_json(self) -> dict[str, Any]:
        found = [finding for file in self.files for finding in file.findings]
        return {
            "schema": 1,
            "path": self.path,
            "summary": {
                "files": len(self.files),
                **{verdict: len(self.of(verdict)) for verdict in (RUNS, ATTENTION, UNREADABLE)},
                "errors": sum(finding.severity == ERROR for finding in found),
                "warnings": sum(finding.severity == WARNING for finding in found),
                "notes": sum(finding.severity == NOTE for finding in found),
            },
            "files": [
                {
                    "path": file.path,
                    "kind": file.kind,
                    "verdict": file.verdict,
                    "sdk_names": list(file.sdk_names),
                    "findings": [asdict(finding) for finding in file.findings],
                }
                for file in self.files
            ],
        }
