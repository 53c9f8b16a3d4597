"""The report on a project for the SDK v1, and its JSON form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

ERROR, WARNING, NOTE = "error", "warning", "note"
RUNS, ATTENTION, UNREADABLE = "runs", "attention", "unreadable"

RULES = {
    "syntax": "Python cannot parse it; the rest of the cell or file is not checked",
    "unknown-name": "a name of the SDK that Runyard does not provide",
    "unknown-keyword": "a keyword that the callable does not accept, or no longer accepts",
    "azure-only": "an Azure service, or a client of one",
    "other-sdk": "an installation of the retired SDK, which would replace this one",
    "framework-version": "a framework version that current Pythons cannot install",
    "tensorflow-1": "names that TensorFlow 2 does not have",
    "numpy-removed": "a name that NumPy removed",
    "package-removed": "a module or name that a package removed, or a package that is no longer released",
    "dead-download": "a download from a host that no longer serves it",
    "azure-storage": "a download from a storage account, which its owner may have closed",
    "gpu-only": "code that needs a GPU to start",
    "surprise": "code that runs but does not do what it seems to",
}


@dataclass(frozen=True)
class Finding:
    rule: str
    severity: str
    name: str  # the code in question: tf.Session
    message: str
    remedy: str = ""
    line: int = 1  # in the file or cell
    cell: int | None = None  # in a notebook, counted from 1 over all cells


@dataclass(frozen=True)
class FileReport:
    path: str
    kind: str  # "script", "notebook"
    findings: tuple[Finding, ...]
    sdk_names: tuple[str, ...]  # used names of the SDK that Runyard has

    @property
    def verdict(self) -> str:
        if any(finding.rule == "syntax" for finding in self.findings) and self.kind == "script":
            return UNREADABLE
        return ATTENTION if any(finding.severity != NOTE for finding in self.findings) else RUNS


@dataclass(frozen=True)
class Report:
    path: str
    files: tuple[FileReport, ...]

    def with_verdict(self, verdict: str) -> list[FileReport]:
        return [file for file in self.files if file.verdict == verdict]

    def as_json(self) -> dict[str, Any]:
        findings = [finding for file in self.files for finding in file.findings]
        return {
            "schema": 1,
            "path": self.path,
            "summary": {
                "files": len(self.files),
                **{verdict: len(self.with_verdict(verdict)) for verdict in (RUNS, ATTENTION, UNREADABLE)},
                "errors": sum(finding.severity == ERROR for finding in findings),
                "warnings": sum(finding.severity == WARNING for finding in findings),
                "notes": sum(finding.severity == NOTE for finding in findings),
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
