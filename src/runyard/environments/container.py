"""Runs in a container image, by the command line of podman or docker.

RUNYARD_CONTAINER_ENGINE         podman, docker or a path; else whichever is there, podman first
RUNYARD_CONTAINER_GLOBAL_FLAGS   flags of the engine itself, before `run`: --runtime runc --storage-driver vfs
RUNYARD_CONTAINER_RUN_FLAGS      flags of every `run`: --cgroups no-conmon
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runyard.environments import build_process, interpreters
from runyard.environments.build_process import Watch
from runyard.environments.interpreters import Interpreter
from runyard.environments.prepared import Prepared
from runyard.errors import EnvironmentException
from runyard.launch.variables import OF_ONE_PROCESS
from runyard.spec.environment import Container

_DEFAULT_SHM_SIZE = "2g"  # data loaders hand tensors over in shared memory; the engines' 64 MB break them
_STOP_GRACE_S = 10

# The engine's own program reads these: handed to it for the container, they would change the engine.
_ALSO_THE_ENGINES = {
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
}


@dataclass(frozen=True)
class Engine:
    path: str
    global_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()

    @property
    def is_podman(self) -> bool:
        return "podman" in Path(self.path).name

    def argv(self, *arguments: str) -> tuple[str, ...]:
        return (self.path, *self.global_flags, *arguments)


@dataclass(frozen=True)
class Image:
    name: str
    digest: str
    python: Interpreter


@dataclass(frozen=True)
class ContainerPrepared(Prepared):
    overlay: str = ""  # a folder of packages for the image's Python
    image: str = ""

    def command(
        self,
        argv_tail: Sequence[str],
        variables: Mapping[str, str],
        workdir: Path,
        *,
        inherited: Mapping[str, str] | None = None,
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Only the run's own variables enter the container; the engine's program gets those of this machine.

        ``variables`` may hold the machine's as well, as for a process on it: what is the same there stays outside, or
        its PATH would hide the image's. A variable is passed by its name (`--env NAME`): any value arrives whole, and
        none is seen in `ps`.
        """
        final = dict(inherited or os.environ)
        own = {name: value for name, value in variables.items() if _is_the_runs(name) or final.get(name) != value}
        wanted = {**self.variables, **own}
        if self.overlay:
            wanted["PYTHONPATH"] = os.pathsep.join(filter(None, (wanted.get("PYTHONPATH"), self.overlay)))
        flags = ["--workdir", str(workdir)]
        for name, value in sorted(wanted.items()):
            if name in _ALSO_THE_ENGINES:
                flags += ["--env", f"{name}={value}"]
            else:
                flags += ["--env", name]
                final[name] = value
        # set for each process when it starts, or not at all: an engine leaves out what it does not find
        flags += [word for name in OF_ONE_PROCESS if name not in wanted for word in ("--env", name)]
        argv = (*self.argv_prefix, *flags, "--entrypoint", self.python, self.image, *argv_tail)
        return argv, final


def _is_the_runs(name: str) -> bool:
    """Set for every run, even where this machine happens to have the same."""
    return name.startswith(("RUNYARD_", "AZUREML_", "PYTHON"))


def find_engine(environ: Mapping[str, str]) -> Engine:
    asked = environ.get("RUNYARD_CONTAINER_ENGINE", "")
    search = environ.get("PATH")
    path = next(
        (found for name in ([asked] if asked else ["podman", "docker"]) if (found := shutil.which(name, path=search))),
        None,
    )
    if path is None:
        raise EnvironmentException(
            f"no container engine {asked!r} is here"
            if asked
            else "a container image needs podman or docker, and neither is here",
            hint="install one (Debian, Ubuntu: apt install podman; Fedora: dnf install podman), or leave the image out",
        )
    return Engine(
        path,
        tuple(shlex.split(environ.get("RUNYARD_CONTAINER_GLOBAL_FLAGS", ""))),
        tuple(shlex.split(environ.get("RUNYARD_CONTAINER_RUN_FLAGS", ""))),
    )


def passes_gpus(engine: Engine) -> bool:
    """Whether the engine was set up to hand this machine's GPUs to containers."""
    if engine.is_podman:
        return any(any(Path(folder).glob("*nvidia*")) for folder in ("/etc/cdi", "/var/run/cdi"))
    return shutil.which("nvidia-container-cli") is not None


def image_name(container: Container) -> str:
    if container.registry and not container.image.startswith(container.registry.rstrip("/") + "/"):
        return f"{container.registry.rstrip('/')}/{container.image}"
    return container.image


class Images:
    """Images that were looked at; an image is looked at once per digest."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Interpreter] = {}
        self._lock = threading.Lock()

    def get(self, engine: Engine, container: Container, interpreter: str | None, watch: Watch) -> Image:
        """The image, pulled when it is not here, and the Python in it."""
        name = image_name(container)
        digest = _digest(engine, name)
        if digest is None:
            _pull(engine, name, watch)
            digest = _digest(engine, name)
        if digest is None:
            raise EnvironmentException(
                f"image {name} is not there after it was pulled", hint=f"try {engine.path} image ls"
            )
        with self._lock:
            python = self._kept.get((digest, interpreter or ""))
            if python is None:
                watch.say(f"looking for Python in image {name}")
                python = self._kept[(digest, interpreter or "")] = _python_of(engine, name, interpreter)
        return Image(name, digest, python)


def prepared(
    engine: Engine,
    image: Image,
    container: Container,
    *,
    key: str,
    run_id: str,
    run_folder: Path,
    kit: Path,
    has_gpu: bool,
    variables: Mapping[str, str],
    packages: str,
    overlay: str = "",
    warnings: tuple[str, ...] = (),
) -> ContainerPrepared:
    name = "runyard-" + re.sub(r"[^A-Za-z0-9_.-]", "-", run_id)
    mounts = [f"{run_folder}:{run_folder}", f"{kit}:{kit}:ro", *([f"{overlay}:{overlay}:ro"] if overlay else [])]
    own = dict(variables)
    if os.getuid() != 0:
        own.setdefault("HOME", str(run_folder))  # the calling user has no home in the image
    prefix = engine.argv(
        "run", "--rm", "--name", f"{name}-$RUNYARD_RANK", "--label", f"runyard.run={run_id}", "--pull", "never",
        "--network", "host", "--shm-size", container.shm_size or _DEFAULT_SHM_SIZE, "--security-opt", "label=disable",
        *(word for mount in mounts for word in ("--volume", mount)),
        *_user_flags(engine), *_init_flags(engine), *(_gpu_flags(engine) if has_gpu else ()),
        *engine.run_flags, *container.arguments,
    )  # fmt: skip
    return ContainerPrepared(
        key=key,
        python=image.python.path,
        argv_prefix=prefix,
        variables=own,
        lock=f"# Python {image.python.version}\n# image {image.name}@{image.digest}\n{packages}",
        warnings=warnings,
        stop_argv=engine.argv("stop", "-t", str(_STOP_GRACE_S), f"{name}-0"),
        overlay=overlay,
        image=image.name,
    )


def _digest(engine: Engine, name: str) -> str | None:
    done = _ask(engine, "image", "inspect", name)
    if done.returncode != 0:
        return None
    found = json.loads(done.stdout)[0]
    digest = str(found.get("Id", ""))
    return digest if digest.startswith("sha256:") else f"sha256:{digest}"


def _pull(engine: Engine, name: str, watch: Watch) -> None:
    watch.say(f"pulling image {name}")
    # docker's daemon does the work, so its client standing still says nothing
    patient = replace(watch, stall_s=1800, tries=1, last_stall_s=0)
    finished = build_process.run(
        engine.argv("pull", name), patient, doing=f"pulling image {name}", variables=dict(os.environ), cwd=watch.root
    )
    if finished.code != 0:
        said = [line for line in finished.output.splitlines() if line.strip()]
        raise EnvironmentException(
            f"image {name} cannot be pulled: {said[-1] if said else 'no reason given'}",
            hint=f"check its name, the network and that you are signed in: {Path(engine.path).name} login",
        )


def _python_of(engine: Engine, name: str, asked: str | None) -> Interpreter:
    reasons = []
    for python in [asked] if asked else ["python", "python3"]:
        argv = engine.argv("run", "--rm", "--pull", "never", *engine.run_flags, "--entrypoint", python, name)
        try:
            found = interpreters.probe(argv, packages=True, timeout_s=120)
        except (OSError, ValueError) as error:
            reasons.append(str(error))
            continue
        interpreters.require_supported(found.version, f"the Python of image {name}")
        return replace(found, path=python)
    raise EnvironmentException(
        f"image {name} does not run a Python ({asked or 'python, python3'}): {reasons[-1]}",
        hint="use an image with Python, or name its interpreter",
    )


def _ask(engine: Engine, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        engine.argv(*arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )


def _user_flags(engine: Engine) -> tuple[str, ...]:
    """Files that a run writes belong to whoever submitted it."""
    if os.getuid() == 0:
        return ()
    return ("--userns", "keep-id") if engine.is_podman else ("--user", f"{os.getuid()}:{os.getgid()}")


def _init_flags(engine: Engine) -> tuple[str, ...]:
    """A first process that reaps; podman needs a program for it that is packaged apart."""
    helper = shutil.which("catatonit") or Path("/usr/libexec/podman/catatonit").exists()
    return ("--init",) if not engine.is_podman or helper else ()


def _gpu_flags(engine: Engine) -> tuple[str, ...]:
    return ("--device", "nvidia.com/gpu=all") if engine.is_podman else ("--gpus", "all")
