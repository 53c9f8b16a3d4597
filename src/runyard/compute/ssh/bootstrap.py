"""Starts Runyard on a host: a shell command that finds a Python, and a program that this Python reads from stdin.

The program reports which parts of Runyard the host lacks, receives them, and becomes the remote agent.
"""

from __future__ import annotations

import base64
import zlib

READY = "RUNYARD-HERE"  # printed by the program; everything before it is output of the user's shell profile
NO_PYTHON = "RUNYARD-NO-PYTHON"

_PYTHONS = (
    "python3 python3.13 python3.12 python3.11 python3.10 python3.9 python /usr/bin/python3 /usr/local/bin/python3"
)

# One line without nested single quotes: bash, dash, zsh, csh and fish all parse it the same way.
COMMAND = (
    "exec sh -c '"
    f'for p in {_PYTHONS} "$HOME"/.runyard-host/python/bin/python3; do '
    'if "$p" -c "import sys; sys.exit(sys.version_info < (3, 9))" >/dev/null 2>&1; then '
    'exec "$p" -c "import sys; exec(sys.stdin.buffer.readline())"; fi; done; '
    f"echo {NO_PYTHON} $(uname -sm)'"
)

_PROGRAM = """
import io, json, os, shutil, sys, tarfile, tempfile
incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
request = json.loads(incoming.readline())
folder = os.path.abspath(os.path.expanduser(request["folder"]))
problem = ""
try:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        problem = "it is not writable"
except OSError as error:
    problem = str(error)
missing = [name for name in request["parts"] if not os.path.isdir(os.path.join(folder, name))]
uname = os.uname()
reply = {"missing": missing, "problem": problem, "folder": folder, "system": uname.sysname, "machine": uname.machine}
outgoing.write(b"\\n" + request["marker"].encode() + b" " + json.dumps(reply).encode() + b"\\n")
outgoing.flush()
if problem:
    sys.exit(1)
for name in missing:
    data = incoming.read(int(incoming.readline()))
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    draft = tempfile.mkdtemp(prefix="half-", dir=os.path.dirname(path))
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        for member in tar.getmembers():
            if member.isfile() and not member.name.startswith("/") and ".." not in member.name.split("/"):
                target = os.path.join(draft, member.name)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with tar.extractfile(member) as source, open(target, "wb") as out:
                    shutil.copyfileobj(source, out)
                os.chmod(target, member.mode)
    os.chmod(draft, 0o755)
    try:
        os.rename(draft, path)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not os.path.isdir(path):
            raise
sys.path.insert(0, os.path.join(folder, request["parts"][0]))
from runyard.compute.ssh.remote_agent import main
main(folder, request, incoming, outgoing)
"""


def program() -> bytes:
    """The program as one line of Python source, which the shell command reads and runs."""
    packed = base64.b64encode(zlib.compress(_PROGRAM.encode(), 9)).decode()
    return f"import base64, zlib; exec(zlib.decompress(base64.b64decode('{packed}')))\n".encode()
