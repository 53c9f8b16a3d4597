"""The Pythons that runs see, kept by their content: built once, used by all who ask for the same.

prepare     a Prepared for a specification: found, built, or waited for while another run builds it
list, prune, clean_leftovers     the housekeeping of the folder
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from runyard import clock
from runyard.environments import cache as inventory
from runyard.environments import conda, container, requirements, venv
from runyard.environments.build_process import Watch
from runyard.environments.horovod.patches import RECIPE
from runyard.environments.interpreters import Interpreter, Interpreters, checked_python, path_of_python, user_managed
from runyard.environments.key import environment_key
from runyard.environments.pipconf import redacted
from runyard.environments.prepared import EnvironmentInfo, PreparationAbandoned, Prepared, Say
from runyard.environments.requirements import Wanted
from runyard.environments.singleflight import Flight, Flights
from runyard.environments.solve import Uv
from runyard.errors import EnvironmentException
from runyard.spec.environment import Container, EnvironmentSpec

__all__ = ["EnvironmentDepot", "EnvironmentInfo", "PreparationAbandoned", "Prepared", "Say"]

Infos = list[EnvironmentInfo]  # in the class below, `list` is a method

_WAITING_EVERY_S = 5.0
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class _Request:
    spec: EnvironmentSpec
    has_gpu: bool
    watch: Watch
    run_folder: Path
    kit: Path
    run_id: str

    @property
    def gpu(self) -> bool:
        return requirements.wants_gpu_packages(self.spec, has_gpu=self.has_gpu)


class EnvironmentDepot:
    """All environments under ``root``. Safe for many threads; one process at a time owns a root."""

    def __init__(self, root: Path, *, environ: Mapping[str, str] | None = None, stall_s: float = 45.0) -> None:
        self.root = root
        self._environ = dict(os.environ if environ is None else environ)
        self._stall_s = stall_s
        self._flights = Flights()  # environments on their way, and Pythons that are being asked
        self._channels = conda.Channels()
        self._images = container.Images()
        self._own: dict[str, tuple[Interpreter, tuple[int, ...]]] = {}
        self._interpreters: Interpreters | None = None

    def prepare(
        self,
        spec: EnvironmentSpec,
        *,
        has_gpu: bool,
        say: Say,
        abandoned: threading.Event,
        run_folder: Path,
        kit: Path,
        run_id: str,
    ) -> Prepared:
        """Blocks until the environment is there. EnvironmentException says why it cannot be;
        PreparationAbandoned soon after ``abandoned`` is set. ``say`` gets one line at a time, from this thread."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _from_os(error, self.root) from error
        watch = Watch(lambda text: say(redacted(text)), abandoned, self.root, self._stall_s)
        request = _Request(spec, has_gpu, watch, run_folder, kit, run_id)
        if spec.container is not None:
            return self._in_container(request, spec.container)
        if spec.user_managed:
            return _as_it_is(spec, self._own_python(spec, abandoned))
        return self._built(request)

    def at_once(self, spec: EnvironmentSpec, *, has_gpu: bool, say: Say) -> Prepared | None:
        """What ``prepare`` would give without building, asking or waiting; None: it would have to."""
        if spec.container is not None:
            return None
        if spec.user_managed:
            found = self._known_own(spec.interpreter or sys.executable)
            if found is None:
                path_of_python(spec.interpreter, self._environ)  # one that is not there is refused at once
                return None
            return _as_it_is(spec, found)
        gpu = requirements.wants_gpu_packages(spec, has_gpu=has_gpu)
        by_conda = requirements.wants_conda(spec)  # one that conda could not answer is asked again, in its own time
        wanted = requirements.wanted(spec, gpu=gpu, conda_answers=by_conda)
        key = self._key("conda" if by_conda else "venv", spec, wanted, gpu)
        meta = inventory.known(self.root, key)
        return None if meta is None else self._found(spec, key, wanted, meta, has_gpu, lambda text: say(redacted(text)))

    def list(self) -> Infos:
        return inventory.listed(self.root)

    def prune(
        self,
        *,
        older_than_s: float | None = None,
        keys: Iterable[str] = (),
        all: bool = False,
        in_use: Iterable[str] = (),
    ) -> Infos:
        """Removes those not used for ``older_than_s``, those named, or all; never one in use or on its way."""
        named, spared = set(keys), set(in_use)
        gone = []
        for info in self.list():
            unused_s = clock.now() - info.last_used_at
            chosen = all or info.key in named or (older_than_s is not None and unused_s >= older_than_s)
            with self._flights.lock:
                if chosen and info.key not in spared and info.key not in self._flights:
                    inventory.remove(info.path)
                    gone.append(info)
        return gone

    def clean_leftovers(self) -> None:
        """For the start of a yard, before anything is prepared: what a killed one left half-built is removed."""
        inventory.clean_leftovers(self.root)

    def _built(self, request: _Request) -> Prepared:
        spec = request.spec
        if requirements.wants_conda(spec):
            wanted = requirements.wanted(spec, gpu=request.gpu, conda_answers=True)
            key = self._key("conda", spec, wanted, request.gpu)
            meta = inventory.known(self.root, key)
            why_not = "" if meta else self._channels.why_not(spec.channels)
            if not why_not:
                return self._ready(request, key, wanted, meta, self._build_conda)
            request.watch.say(f"{why_not}: conda packages are taken from PyPI")
        wanted = requirements.wanted(spec, gpu=request.gpu, conda_answers=False)
        key = self._key("venv", spec, wanted, request.gpu)
        return self._ready(request, key, wanted, inventory.known(self.root, key), self._build_venv)

    def _key(self, kind: str, spec: EnvironmentSpec, wanted: Wanted, gpu: bool, where: str = "") -> str:
        return environment_key(
            kind=kind,
            python=checked_python(wanted.python) if not where else "",
            platform=where or _platform(),
            requirements=wanted.requirements,
            options=wanted.options,
            conda=wanted.conda,
            channels=spec.channels if wanted.conda else (),
            backend="gpu" if gpu else "cpu",
            stamps=(*map(_stamp, requirements.local_files(wanted.requirements)), *_built_by_us(wanted)),
        )

    def _ready(
        self,
        request: _Request,
        key: str,
        wanted: Wanted,
        meta: inventory.Meta | None,
        build: Callable[[_Request, str, Wanted], inventory.Meta],
    ) -> Prepared:
        if meta is not None:
            return self._found(request.spec, key, wanted, meta, request.has_gpu, request.watch.say)
        warnings = _say_decisions(request.spec, wanted, request.has_gpu, request.watch.say)
        meta = self._single_flight(request, key, wanted, build)
        return self._prepared(request.spec, key, meta, warnings)

    def _found(
        self, spec: EnvironmentSpec, key: str, wanted: Wanted, meta: inventory.Meta, has_gpu: bool, say: Say
    ) -> Prepared:
        warnings = _say_decisions(spec, wanted, has_gpu, say)
        say(f"environment {key} is there already")
        return self._prepared(spec, key, meta, warnings)

    def _prepared(self, spec: EnvironmentSpec, key: str, meta: inventory.Meta, warnings: tuple[str, ...]) -> Prepared:
        prefix = self.root / key
        return Prepared(
            key=key,
            python=str(prefix / "bin" / "python"),
            path_entries=(str(prefix / "bin"),),
            variables={_home_variable(prefix): str(prefix), **spec.variables},
            lock=meta.lock,
            warnings=(*warnings, *meta.warnings),
        )

    def _single_flight(
        self,
        request: _Request,
        key: str,
        wanted: Wanted,
        build: Callable[[_Request, str, Wanted], inventory.Meta],
        *,
        with_python: bool = True,
    ) -> inventory.Meta:
        """Builds, or waits for the run that does."""

        def built() -> inventory.Meta:
            try:
                return build(request, key, wanted)
            except OSError as error:
                raise _from_os(error, self.root) from error

        return self._flights.once(
            key,
            request.run_id,
            lambda: inventory.known(self.root, key, with_python=with_python),
            built,
            lambda flight: self._wait(request.watch, flight),
        )

    def _wait(self, watch: Watch, flight: Flight) -> None:
        started = clock.monotonic()
        watch.say(f"waiting for the same environment, being built for run {flight.run_id}")
        said_at = started
        while not flight.done.wait(_LOOK_EVERY_S):
            if watch.abandoned.is_set():
                raise PreparationAbandoned(f"abandoned while waiting for the environment of run {flight.run_id}")
            if clock.monotonic() - said_at >= _WAITING_EVERY_S:
                said_at = clock.monotonic()
                watch.say(f"still waiting for run {flight.run_id}, {clock.duration_text(said_at - started)}")

    def _build_venv(self, request: _Request, key: str, wanted: Wanted) -> inventory.Meta:
        uv, watch = self._tools(request)
        with self._flights.lock:
            if self._interpreters is None:
                self._interpreters = Interpreters(uv.path, self._environ)
        python = self._interpreters.find(wanted.python, watch.say)
        return venv.build(
            uv, self.root, key, name=request.spec.name, wanted=wanted, python=python, gpu=request.gpu, watch=watch
        )

    def _build_conda(self, request: _Request, key: str, wanted: Wanted) -> inventory.Meta:
        uv, watch = self._tools(request)
        return conda.build(
            uv,
            self.root,
            key,
            name=request.spec.name,
            wanted=wanted,
            channels=request.spec.channels,
            python=checked_python(wanted.python),
            gpu=request.gpu,
            watch=watch,
        )

    def _tools(self, request: _Request) -> tuple[Uv, Watch]:
        uv = venv.find_uv(self._environ, self.root)
        watch = request.watch
        for note in uv.settings.notes:
            watch.say(note)
        return uv, Watch(watch.say, watch.abandoned, watch.root, watch.stall_s, last_stall_s=uv.pip.timeout_s)

    def _own_python(self, spec: EnvironmentSpec, abandoned: threading.Event) -> Interpreter:
        """Asked once, until its packages change: each start of it costs tens of milliseconds, and of two runs that ask
        in one moment the later would come first as often as not. One that does not answer is waited for once by all."""
        asked = spec.interpreter or sys.executable

        def ask() -> Interpreter:
            found = user_managed(spec.interpreter, self._environ)
            self._own[asked] = (found, _times(found))
            return found

        def wait(flight: Flight) -> None:
            while not flight.done.wait(_LOOK_EVERY_S):
                if abandoned.is_set():
                    raise PreparationAbandoned(f"abandoned while {asked} was asked for its packages")

        return self._flights.once(asked, "", lambda: self._known_own(asked), ask, wait)

    def _known_own(self, asked: str) -> Interpreter | None:
        found, times = self._own.get(asked, (None, ()))
        return found if found is not None and _times(found) == times else None

    def _in_container(self, request: _Request, wanted_container: Container) -> Prepared:
        spec, watch = request.spec, request.watch
        engine = container.find_engine(self._environ)
        image = self._images.get(engine, wanted_container, spec.interpreter, watch)
        wanted = requirements.wanted(spec, gpu=request.gpu, conda_answers=False, in_image=True)
        key = self._key("container", spec, wanted, request.gpu, where=f"{image.digest} {image.python.path}")
        warnings = _say_decisions(spec, wanted, request.has_gpu, watch.say)
        packages, overlay = "".join(f"{line}\n" for line in image.python.packages), ""
        if wanted.requirements and not spec.user_managed:

            def build(request: _Request, key: str, wanted: Wanted) -> inventory.Meta:
                uv, watch = self._tools(request)
                return venv.build_overlay(
                    uv,
                    self.root,
                    key,
                    name=spec.name,
                    wanted=wanted,
                    python=image.python.version,
                    gpu=request.gpu,
                    watch=watch,
                )

            meta = inventory.known(self.root, key, with_python=False) or self._single_flight(
                request, key, wanted, build, with_python=False
            )
            packages = f"{packages}# over the image\n{meta.lock}"
            overlay, warnings = str(self.root / key / "packages"), (*warnings, *meta.warnings)
        return container.prepared(
            engine,
            image,
            wanted_container,
            key=key,
            run_id=request.run_id,
            run_folder=request.run_folder,
            kit=request.kit,
            # asked for, it may fail loudly; unasked, a machine that cannot pass its GPUs on is no reason to fail
            has_gpu=request.has_gpu and (spec.gpu or container.passes_gpus(engine)),
            variables=spec.variables,
            packages=packages,
            overlay=overlay,
            warnings=warnings,
        )


def _as_it_is(spec: EnvironmentSpec, found: Interpreter) -> Prepared:
    packages = "".join(f"{line}\n" for line in found.packages)
    return Prepared(
        key=environment_key(kind="user-managed", python=found.path, platform=_platform()),
        python=found.path,
        path_entries=(str(Path(found.path).parent),) if os.sep in found.path else (),
        variables=dict(spec.variables),
        lock=f"# Python {found.version} at {found.path}, as it is\n{packages}",
    )


def _say_decisions(spec: EnvironmentSpec, wanted: Wanted, has_gpu: bool, say: Say) -> tuple[str, ...]:
    warnings = list(wanted.warnings)
    if spec.gpu and not has_gpu:
        warnings.append("no GPU here: the CPU packages are used")
    for line in (*wanted.notes, *warnings):
        say(line)
    return tuple(warnings)


def _home_variable(prefix: Path) -> str:
    return "CONDA_PREFIX" if (prefix / "conda-meta").is_dir() else "VIRTUAL_ENV"


@cache
def _platform() -> str:
    return "-".join((sys.platform, platform.machine(), *platform.libc_ver()))


def _built_by_us(wanted: Wanted) -> tuple[str, ...]:
    return (f"horovod {wanted.horovod} by recipe {RECIPE}",) if wanted.horovod else ()


def _stamp(path: str) -> str:
    try:
        found = Path(path).stat()
    except OSError as error:
        raise EnvironmentException(
            f"pip package {path} cannot be read: {error.strerror}",
            hint="give the path of a wheel on the yard's machine",
        ) from error
    return f"{path} {found.st_size} {found.st_mtime_ns}"


def _times(interpreter: Interpreter) -> tuple[int, ...]:
    times = []
    for place in (interpreter.path, interpreter.site):
        with contextlib.suppress(OSError):
            times.append(Path(place).stat().st_mtime_ns)
    return tuple(times)


def _from_os(error: OSError, root: Path) -> EnvironmentException:
    return EnvironmentException(
        f"the environment cannot be written: {error.strerror or error} ({error.filename or root})",
        hint="check the free space and the permissions of that folder",
    )
