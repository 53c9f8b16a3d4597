"""The `runyard doctor` command."""

from __future__ import annotations

from runyard.cli.command import Command, new_app
from runyard.cli.run_lookup import Json, print_json

app = new_app()
_MARKS = {"ok": "ok", "missing": "--", "broken": "!!"}


@app.command(cls=Command)
def doctor(as_json: Json = False) -> int:
    """Check what this machine supports, and how to install what is missing.

    The exit code is 1 only if something that every run needs is broken.
    """
    from runyard.cli.doctor_checks import run_checks

    findings = run_checks()
    broken = [finding for finding in findings if finding.state == "broken"]
    if as_json:
        print_json([finding.__dict__ for finding in findings])
        return 1 if broken else 0
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print(f"{_MARKS[finding.state]}  {finding.name:<{width}}  {finding.text}")
        if finding.remedy:
            print(f"    {'':<{width}}  -> {finding.remedy}")
    missing = sum(finding.state == "missing" for finding in findings)
    print()
    if broken:
        print(f"broken: {', '.join(finding.name for finding in broken)}")
        return 1
    print("everything that runs need is available" + (f"; {missing} optional items are missing" if missing else ""))
    return 0
