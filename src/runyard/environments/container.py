"""Runs in container images, with the command line of podman or docker.

RUNYARD_CONTAINER_ENGINE         podman, docker or a path; default: podman if installed, else docker
RUNYARD_CONTAINER_GLOBAL_FLAGS   flags of the engine, before `run`: --runtime runc --storage-driver vfs
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
from runyard.environments.build_process import BuildContext
from runyard.environments.interpreters import Interpreter
from runyard.environments.prepared import Prepared
from runyard.errors import EnvironmentException
from runyard.launch.variables import PER_PROCESS_VARIABLES
from runyard.spec.environment import Container

_DEFAULT_SHM_SIZE = "2g"  # data loaders pass tensors in shared memory; the engines' default of 64 MB is too small
_STOP_GRACE_S = 10

# Read by the engine's own program: passed by name, they would change its behavior.
_ENGINE_VARIABLES = {
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
    overlay: str = ""  # a folder with additional packages for the image's Python
    image: str = ""

    def command(
        self,
        argv_tail: Sequence[str],
        variables: Mapping[str, str],
        workdir: Path,
        *,
        inherited: Mapping[str, str] | None = None,
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The engine's command. Only the run's variables enter the container; the engine itself gets the machine's.

        ``variables`` may also contain those of the machine. Equal ones are not passed on: the machine's PATH would
        hide the image's. Variables are passed by name (`--env NAME`), so that any value works and none is visible in
        `ps`.
        """
        engine_variables = dict(inherited or os.environ)
        container_variables = {
            **self.variables,
            **{k: v for k, v in variables.items() if _is_run_variable(k) or engine_variables.get(k) != v},
        }
        if self.overlay:
            paths = (container_variables.get("PYTHONPATH"), self.overlay)
            container_variables["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        flags = ["--workdir", str(workdir)]
        for name, value in sorted(container_variables.items()):
            if name in _ENGINE_VARIABLES:
                flags += ["--env", f"{name}={value}"]
            else:
                flags += ["--env", name]
                engine_variables[name] = value
        # set per process when it starts; the engine skips variables that are not set
        flags += [word for name in PER_PROCESS_VARIABLES if name not in container_variables for word in ("--env", name)]
        argv = (*self.argv_prefix, *flags, "--entrypoint", self.python, self.image, *argv_tail)
        return argv, engine_variables


def _is_run_variable(name: str) -> bool:
    """True for variables that Runyard sets for every run, even if the machine has the same value."""
    return name.startswith(("RUNYARD_", "AZUREML_", "PYTHON"))


def find_engine(environ: Mapping[str, str]) -> Engine:
    configured = environ.get("RUNYARD_CONTAINER_ENGINE", "")
    names = [configured] if configured else ["podman", "docker"]
    path = next((path for name in names if (path := shutil.which(name, path=environ.get("PATH")))), None)
    if path is None:
        raise EnvironmentException(
            f"the container engine {configured!r} is not installed"
            if configured
            else "a container image needs podman or docker, but neither is installed",
            hint="install one (Debian, Ubuntu: apt install podman; Fedora: dnf install podman), or use no image",
        )
    return Engine(
        path,
        tuple(shlex.split(environ.get("RUNYARD_CONTAINER_GLOBAL_FLAGS", ""))),
        tuple(shlex.split(environ.get("RUNYARD_CONTAINER_RUN_FLAGS", ""))),
    )


def supports_gpus(engine: Engine) -> bool:
    """True if the engine is configured to pass this machine's GPUs to containers."""
    if engine.is_podman:
        return any(any(Path(folder).glob("*nvidia*")) for folder in ("/etc/cdi", "/var/run/cdi"))
    return shutil.which("nvidia-container-cli") is not None


def image_name(container: Container) -> str:
    if container.registry and not container.image.startswith(container.registry.rstrip("/") + "/"):
        return f"{container.registry.rstrip('/')}/{container.image}"
    return container.image


class Images:
    """Pulls images and probes their Python, once per digest."""

    def __init__(self) -> None:
        self._pythons: dict[tuple[str, str], Interpreter] = {}
        self._lock = threading.Lock()

    def get(self, engine: Engine, container: Container, interpreter: str | None, context: BuildContext) -> Image:
        """The image, pulled if necessary, with its Python."""
        name = image_name(container)
        digest = _digest(engine, name)
        if digest is None:
            _pull(engine, name, context)
            digest = _digest(engine, name)
        if digest is None:
            raise EnvironmentException(
                f"image {name} does not exist after it was pulled", hint=f"try {engine.path} image ls"
            )
        with self._lock:
            python = self._pythons.get((digest, interpreter or ""))
            if python is None:
                context.report(f"looking for Python in image {name}")
                python = self._pythons[(digest, interpreter or "")] = _find_python(engine, name, interpreter)
        return Image(name, digest, python)


def prepare(
    engine: Engine,
    image: Image,
    container: Container,
    *,
    key: str,
    run_id: str,
    run_folder: Path,
    node_package: Path,
    has_gpu: bool,
    variables: Mapping[str, str],
    packages: str,
    overlay: str = "",
    warnings: tuple[str, ...] = (),
) -> ContainerPrepared:
    name = "runyard-" + re.sub(r"[^A-Za-z0-9_.-]", "-", run_id)
    mounts = [
        f"{run_folder}:{run_folder}",
        f"{node_package}:{node_package}:ro",
        *([f"{overlay}:{overlay}:ro"] if overlay else []),
    ]
    container_variables = dict(variables)
    if os.getuid() != 0:
        container_variables.setdefault("HOME", str(run_folder))  # the user has no home in the image
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
        variables=container_variables,
        lock=f"# Python {image.python.version}\n# image {image.name}@{image.digest}\n{packages}",
        warnings=warnings,
        stop_argv=engine.argv("stop", "-t", str(_STOP_GRACE_S), f"{name}-0"),
        overlay=overlay,
        image=image.name,
    )


def _digest(engine: Engine, name: str) -> str | None:
    process = _run_engine(engine, "image", "inspect", name)
    if process.returncode != 0:
        return None
    digest = str(json.loads(process.stdout)[0].get("Id", ""))
    return digest if digest.startswith("sha256:") else f"sha256:{digest}"


def _pull(engine: Engine, name: str, context: BuildContext) -> None:
    context.report(f"pulling image {name}")
    # the work is done by docker's daemon, so its client looks inactive
    long_stall = replace(context, stall_s=1800, attempts=1, last_stall_s=0)
    process = build_process.run(
        engine.argv("pull", name),
        long_stall,
        activity=f"pulling image {name}",
        variables=dict(os.environ),
        cwd=context.root,
    )
    if process.code != 0:
        lines = [line for line in process.output.splitlines() if line.strip()]
        raise EnvironmentException(
            f"cannot pull image {name}: {lines[-1] if lines else 'no reason given'}",
            hint=f"check its name, the network and your login: {Path(engine.path).name} login",
        )


def _find_python(engine: Engine, name: str, interpreter: str | None) -> Interpreter:
    reasons = []
    for python in [interpreter] if interpreter else ["python", "python3"]:
        argv = engine.argv("run", "--rm", "--pull", "never", *engine.run_flags, "--entrypoint", python, name)
        try:
            probed = interpreters.probe(argv, packages=True, timeout_s=120)
        except (OSError, ValueError) as error:
            reasons.append(str(error))
            continue
        interpreters.require_supported(probed.version, f"the Python of image {name}")
        return replace(probed, path=python)
    raise EnvironmentException(
        f"image {name} has no working Python ({interpreter or 'python, python3'}): {reasons[-1]}",
        hint="use an image with Python, or set the path of its interpreter",
    )


def _run_engine(engine: Engine, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        engine.argv(*arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )


def _user_flags(engine: Engine) -> tuple[str, ...]:
    """Flags that make files written by a run belong to the user."""
    if os.getuid() == 0:
        return ()
    return ("--userns", "keep-id") if engine.is_podman else ("--user", f"{os.getuid()}:{os.getgid()}")


def _init_flags(engine: Engine) -> tuple[str, ...]:
    """Flags for an init process that reaps zombies; podman needs a separately packaged program for it."""
    helper = shutil.which("catatonit") or Path("/usr/libexec/podman/catatonit").exists()
    return ("--init",) if not engine.is_podman or helper else ()


def _gpu_flags(engine: Engine) -> tuple[str, ...]:
    return ("--device", "nvidia.com/gpu=all") if engine.is_podman else ("--gpus", "all")
