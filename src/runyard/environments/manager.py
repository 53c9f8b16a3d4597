"""The Python environments of runs, identified by their content: built once and shared by all equal requests.

prepare     a Prepared for a specification: existing, built, or built by another run that is waited for
list, prune, clean_leftovers     maintenance of the folder
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runyard import clock
from runyard.environments import cache as env_cache
from runyard.environments import conda, container, requirements, venv
from runyard.environments.build_process import BuildContext
from runyard.environments.horovod.patches import RECIPE
from runyard.environments.interpreters import Interpreters, validate_python_version
from runyard.environments.key import environment_key, platform_tag
from runyard.environments.prepared import EnvironmentInfo, PreparationCanceled, Prepared, ProgressCallback
from runyard.environments.requirements import InstallPlan
from runyard.environments.singleflight import Computation, SingleFlight
from runyard.environments.solve import Uv
from runyard.environments.user_python import UserPythons
from runyard.errors import EnvironmentException
from runyard.posix.pip_configuration import redact
from runyard.spec.environment import Container, EnvironmentSpec

__all__ = ["EnvironmentInfo", "EnvironmentManager", "PreparationCanceled", "Prepared", "ProgressCallback"]

Infos = list[EnvironmentInfo]  # in the class below, `list` is a method

_REPORT_EVERY_S = 5.0
_POLL_S = 0.1


@dataclass(frozen=True)
class _Request:
    spec: EnvironmentSpec
    has_gpu: bool
    context: BuildContext
    run_folder: Path
    node_package: Path
    run_id: str

    @property
    def gpu(self) -> bool:
        return requirements.uses_gpu_packages(self.spec, has_gpu=self.has_gpu)


class EnvironmentManager:
    """All environments below ``root``. Thread-safe; a root must be used by one process at a time."""

    def __init__(self, root: Path, *, environ: Mapping[str, str] | None = None, stall_s: float = 45.0) -> None:
        self.root = root
        self._environ = dict(os.environ if environ is None else environ)
        self._stall_s = stall_s
        self._single_flight = SingleFlight()
        self._channels = conda.Channels()
        self._images = container.Images()
        self._user_pythons = UserPythons(self._environ)
        self._interpreters: Interpreters | None = None

    def prepare(
        self,
        spec: EnvironmentSpec,
        *,
        has_gpu: bool,
        report: ProgressCallback,
        canceled: threading.Event,
        run_folder: Path,
        node_package: Path,
        run_id: str,
    ) -> Prepared:
        """Prepare the environment of a run, building it if necessary.

        Args:
            spec: The specification.
            has_gpu: The machine has a GPU.
            report: Receives progress messages, in this thread.
            canceled: Set by another thread to stop.
            run_folder: The run's folder, mounted into containers.
            node_package: The folder of the node package, mounted into containers.
            run_id: The run.

        Raises:
            EnvironmentException: The environment cannot be built.
            PreparationCanceled: ``canceled`` was set.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _disk_error(error, self.root) from error
        context = BuildContext(lambda text: report(redact(text)), canceled, self.root, self._stall_s)
        request = _Request(spec, has_gpu, context, run_folder, node_package, run_id)
        if spec.container is not None:
            return self._prepare_container(request, spec.container)
        if spec.user_managed:
            return self._user_pythons.prepare(spec, canceled)
        return self._prepare_managed(request)

    def prepare_existing(self, spec: EnvironmentSpec, *, has_gpu: bool, report: ProgressCallback) -> Prepared | None:
        """The result of ``prepare`` if it is available immediately; None if it needs a build, a probe or a wait."""
        if spec.container is not None:
            return None
        if spec.user_managed:
            return self._user_pythons.prepare_existing(spec)
        gpu = requirements.uses_gpu_packages(spec, has_gpu=has_gpu)
        use_conda = requirements.needs_conda(spec)  # channels that did not respond are tried again by `prepare`
        plan = requirements.install_plan(spec, gpu=gpu, use_conda=use_conda)
        key = self._key("conda" if use_conda else "venv", spec, plan, gpu)
        metadata = env_cache.load(self.root, key)
        if metadata is None:
            return None
        return self._existing(spec, key, plan, metadata, has_gpu, lambda text: report(redact(text)))

    def list(self) -> Infos:
        return env_cache.list_environments(self.root)

    def prune(
        self,
        *,
        older_than_s: float | None = None,
        keys: Iterable[str] = (),
        all: bool = False,
        in_use: Iterable[str] = (),
    ) -> Infos:
        """Remove environments that are not in use and return them.

        Args:
            older_than_s: Remove those that were not used for this time.
            keys: Remove these.
            all: Remove all.
            in_use: Keys of environments to keep.
        """
        selected_keys, used_keys = set(keys), set(in_use)
        removed = []
        for info in self.list():
            unused_s = clock.now() - info.last_used_at
            is_old = older_than_s is not None and unused_s >= older_than_s
            if info.key in used_keys or not (all or is_old or info.key in selected_keys):
                continue
            with self._single_flight.lock:
                if info.key not in self._single_flight:
                    env_cache.remove(info.path)
                    removed.append(info)
        return removed

    def clean_leftovers(self) -> None:
        """Remove incomplete environments of a killed yard. Call it at the start, before anything is prepared."""
        env_cache.clean_leftovers(self.root)

    def _prepare_managed(self, request: _Request) -> Prepared:
        spec = request.spec
        if requirements.needs_conda(spec):
            plan = requirements.install_plan(spec, gpu=request.gpu, use_conda=True)
            key = self._key("conda", spec, plan, request.gpu)
            metadata = env_cache.load(self.root, key)
            problem = "" if metadata else self._channels.problem(spec.channels)
            if not problem:
                return self._prepare_built(request, key, plan, metadata, self._build_conda)
            request.context.report(f"{problem}: conda packages are installed from PyPI")
        plan = requirements.install_plan(spec, gpu=request.gpu, use_conda=False)
        key = self._key("venv", spec, plan, request.gpu)
        return self._prepare_built(request, key, plan, env_cache.load(self.root, key), self._build_venv)

    def _key(self, kind: str, spec: EnvironmentSpec, plan: InstallPlan, gpu: bool, image: str = "") -> str:
        return environment_key(
            kind=kind,
            python=validate_python_version(plan.python) if not image else "",
            platform=image or platform_tag(),
            requirements=plan.requirements,
            options=plan.options,
            conda=plan.conda,
            channels=spec.channels if plan.conda else (),
            backend="gpu" if gpu else "cpu",
            stamps=(*map(_stamp, requirements.local_files(plan.requirements)), *_recipe_stamps(plan)),
        )

    def _prepare_built(
        self,
        request: _Request,
        key: str,
        plan: InstallPlan,
        metadata: env_cache.Metadata | None,
        build: Callable[[_Request, str, InstallPlan], env_cache.Metadata],
    ) -> Prepared:
        if metadata is not None:
            return self._existing(request.spec, key, plan, metadata, request.has_gpu, request.context.report)
        warnings = _report_decisions(request.spec, plan, request.has_gpu, request.context.report)
        metadata = self._build_once(request, key, plan, build)
        return self._prepared(request.spec, key, metadata, warnings)

    def _existing(
        self,
        spec: EnvironmentSpec,
        key: str,
        plan: InstallPlan,
        metadata: env_cache.Metadata,
        has_gpu: bool,
        report: ProgressCallback,
    ) -> Prepared:
        warnings = _report_decisions(spec, plan, has_gpu, report)
        report(f"environment {key} exists")
        return self._prepared(spec, key, metadata, warnings)

    def _prepared(
        self, spec: EnvironmentSpec, key: str, metadata: env_cache.Metadata, warnings: tuple[str, ...]
    ) -> Prepared:
        prefix = self.root / key
        return Prepared(
            key=key,
            python=str(prefix / "bin" / "python"),
            path_entries=(str(prefix / "bin"),),
            variables={_prefix_variable(prefix): str(prefix), **spec.variables},
            lock=metadata.lock,
            warnings=(*warnings, *metadata.warnings),
        )

    def _build_once(
        self,
        request: _Request,
        key: str,
        plan: InstallPlan,
        build: Callable[[_Request, str, InstallPlan], env_cache.Metadata],
        *,
        with_python: bool = True,
    ) -> env_cache.Metadata:
        """Build an environment, or wait for the run that builds it."""

        def compute() -> env_cache.Metadata:
            try:
                return build(request, key, plan)
            except OSError as error:
                raise _disk_error(error, self.root) from error

        return self._single_flight.run(
            key,
            request.run_id,
            lambda: env_cache.load(self.root, key, with_python=with_python),
            compute,
            lambda computation: self._wait(request.context, computation),
        )

    def _wait(self, context: BuildContext, computation: Computation) -> None:
        run_id = computation.run_id
        context.report(f"waiting for the same environment, being built for run {run_id}")
        started_at = reported_at = clock.monotonic()
        while not computation.done.wait(_POLL_S):
            if context.canceled.is_set():
                raise PreparationCanceled(f"canceled while waiting for the environment of run {run_id}")
            if clock.monotonic() - reported_at >= _REPORT_EVERY_S:
                reported_at = clock.monotonic()
                context.report(f"still waiting for run {run_id}, {clock.duration_text(reported_at - started_at)}")

    def _build_venv(self, request: _Request, key: str, plan: InstallPlan) -> env_cache.Metadata:
        uv, context = self._tools(request)
        with self._single_flight.lock:
            if self._interpreters is None:
                self._interpreters = Interpreters(uv.path, self._environ)
        python = self._interpreters.find(plan.python, context.report)
        return venv.build(
            uv, self.root, key, name=request.spec.name, plan=plan, python=python, gpu=request.gpu, context=context
        )

    def _build_conda(self, request: _Request, key: str, plan: InstallPlan) -> env_cache.Metadata:
        uv, context = self._tools(request)
        return conda.build(
            uv,
            self.root,
            key,
            name=request.spec.name,
            plan=plan,
            channels=request.spec.channels,
            python=validate_python_version(plan.python),
            gpu=request.gpu,
            context=context,
        )

    def _tools(self, request: _Request) -> tuple[Uv, BuildContext]:
        uv = venv.find_uv(self._environ, self.root)
        context = request.context
        for note in uv.settings.notes:
            context.report(note)
        return uv, BuildContext(
            context.report, context.canceled, context.root, context.stall_s, last_stall_s=uv.pip.timeout_s
        )

    def _prepare_container(self, request: _Request, image_spec: Container) -> Prepared:
        spec, context = request.spec, request.context
        engine = container.find_engine(self._environ)
        image = self._images.get(engine, image_spec, spec.interpreter, context)
        plan = requirements.install_plan(spec, gpu=request.gpu, use_conda=False, in_image=True)
        key = self._key("container", spec, plan, request.gpu, image=f"{image.digest} {image.python.path}")
        warnings = _report_decisions(spec, plan, request.has_gpu, context.report)
        packages, overlay = "".join(f"{line}\n" for line in image.python.packages), ""
        if plan.requirements and not spec.user_managed:

            def build(request: _Request, key: str, plan: InstallPlan) -> env_cache.Metadata:
                uv, context = self._tools(request)
                return venv.build_overlay(
                    uv,
                    self.root,
                    key,
                    name=spec.name,
                    plan=plan,
                    python=image.python.version,
                    gpu=request.gpu,
                    context=context,
                )

            metadata = env_cache.load(self.root, key, with_python=False) or self._build_once(
                request, key, plan, build, with_python=False
            )
            packages = f"{packages}# over the image\n{metadata.lock}"
            overlay, warnings = str(self.root / key / "packages"), (*warnings, *metadata.warnings)
        return container.prepare(
            engine,
            image,
            image_spec,
            key=key,
            run_id=request.run_id,
            run_folder=request.run_folder,
            node_package=request.node_package,
            # if GPUs were not requested, an engine without GPU support must not make the run fail
            has_gpu=request.has_gpu and (spec.gpu or container.supports_gpus(engine)),
            variables=spec.variables,
            packages=packages,
            overlay=overlay,
            warnings=warnings,
        )


def _report_decisions(
    spec: EnvironmentSpec, plan: InstallPlan, has_gpu: bool, report: ProgressCallback
) -> tuple[str, ...]:
    warnings = list(plan.warnings)
    if spec.gpu and not has_gpu:
        warnings.append("this machine has no GPU: the CPU packages are used")
    for line in (*plan.notes, *warnings):
        report(line)
    return tuple(warnings)


def _prefix_variable(prefix: Path) -> str:
    return "CONDA_PREFIX" if (prefix / "conda-meta").is_dir() else "VIRTUAL_ENV"


def _recipe_stamps(plan: InstallPlan) -> tuple[str, ...]:
    return (f"horovod {plan.horovod} by recipe {RECIPE}",) if plan.horovod else ()


def _stamp(path: str) -> str:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise EnvironmentException(
            f"cannot read the pip package {path}: {error.strerror}",
            hint="use the path of a wheel on the yard's machine",
        ) from error
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _disk_error(error: OSError, root: Path) -> EnvironmentException:
    return EnvironmentException(
        f"cannot write the environment: {error.strerror or error} ({error.filename or root})",
        hint="check the free space and the permissions of that folder",
    )
