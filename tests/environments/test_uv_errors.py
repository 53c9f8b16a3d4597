"""Failures of uv are translated: real outputs of old and new releases."""

from __future__ import annotations

from runyard.environments.uv_errors import is_network_error, uv_error

OLD_UNSOLVABLE = """\
Using Python 3.11.7 environment at: /home/environments/k
  \u00d7 No solution found when resolving dependencies:
  ╰─▶ Because six was not found in the package registry and you
      require six, we can conclude that your requirements are unsatisfiable.
"""

NEW_UNSOLVABLE = """\
warning: `VIRTUAL_ENV=/x` does not match the project environment path
error: No solution found when resolving dependencies
  cause: Because torch==1.4.0 has no wheels with a matching Python ABI tag (e.g., `cp311`) and you \
require torch==1.4.0, we can conclude that your requirements are unsatisfiable.

hint: You require CPython 3.11 (`cp311`)
"""

REFUSED = """\
error: Request failed after 3 retries in 6.5s
  cause: Failed to fetch: http://127.0.0.1:9/simple/six/
  cause: error sending request for url (http://127.0.0.1:9/simple/six/)
  cause: tcp connect error
  cause: Connection refused (os error 111)
"""

UNAUTHORIZED = """\
error: Failed to fetch: `https://example.org/simple/six/`
  cause: HTTP status client error (401 Unauthorized) for url (https://example.org/simple/six/)
"""

BROKEN_BUILD = """\
error: Failed to build `broken==1.0`
  cause: The build backend returned an error
  cause: Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)

         [stderr]
         Traceback (most recent call last):
           File "<string>", line 1, in <module>
         RuntimeError: no compiler, and the certificate timed out

hint: Build failures usually indicate a problem with the package
"""

DISK_FULL = """\
error: Failed to install: leaf-1.0-py3-none-any.whl (leaf==1.0)
  cause: failed to copy file from /cache/leaf.py to /home/leaf.py
  cause: No space left on device (os error 28)
"""


def translate(output: str) -> tuple[str, str]:
    error = uv_error(output, activity="solving", pip_sources=("/etc/pip.conf", "PIP_INDEX_URL"))
    return error.message, error.hint


def test_the_solvers_reason_is_the_message_without_decoration() -> None:
    assert translate(OLD_UNSOLVABLE)[0] == (
        "no solution for the packages: Because six was not found in the package registry and you require six, "
        "we can conclude that your requirements are unsatisfiable."
    )


def test_the_solvers_hint_is_the_hint() -> None:
    message, hint = translate(NEW_UNSOLVABLE)
    assert message.startswith("no solution for the packages: Because torch==1.4.0 has no wheels")
    assert hint == "You require CPython 3.11 (`cp311`)"


def test_an_unreachable_index_is_reported_with_the_configuration() -> None:
    message, hint = translate(REFUSED)
    assert message == (
        "the package index does not respond (http://127.0.0.1:9/simple/six/): Connection refused (os error 111)"
    )
    assert "/etc/pip.conf, PIP_INDEX_URL" in hint


def test_an_index_that_refuses_is_reported_with_its_status() -> None:
    assert translate(UNAUTHORIZED)[0].startswith(
        "the package index refuses the request (https://example.org/simple/six/): HTTP status"
    )


def test_a_failed_build_is_reported_with_its_last_line() -> None:
    message, hint = translate(BROKEN_BUILD)
    assert message == (
        "broken==1.0 cannot be built from its source: RuntimeError: no compiler, and the certificate timed out"
    )
    assert "environment log" in hint
    assert not is_network_error(BROKEN_BUILD)


def test_a_full_disk_is_reported() -> None:
    message, hint = translate(DISK_FULL)
    assert message == "the disk is full: No space left on device (os error 28)"
    assert "runyard envs prune" in hint


def test_a_failure_without_output_is_reported() -> None:
    assert translate("")[0] == "solving failed without output"
