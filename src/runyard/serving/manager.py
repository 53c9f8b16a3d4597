"""Manages all services of a yard; each deployment runs in a separate thread."""

from __future__ import annotations

import functools
import logging
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, TypeVar, cast

from runyard import clock
from runyard.errors import RunyardException, WebserviceException
from runyard.models.registry import Models
from runyard.orchestrator.components import Components
from runyard.serving import deployment, validation
from runyard.serving.history import History
from runyard.serving.monitor import ServiceMonitor
from runyard.serving.supervisor_client import SupervisorClient, free_port, new_key
from runyard.spec.folder import HomeFolder
from runyard.spec.json import from_json, to_json
from runyard.spec.service import ServiceConfiguration, ServiceFolder, VersionSpec
from runyard.store.services import RETIRED, ServiceRecord, ServiceStore, VersionRecord
from runyard.wire.services import ChangeService, DeployService, NewVersion

log = logging.getLogger(__name__)
TRANSITIONING, HEALTHY, UNHEALTHY, FAILED = "Transitioning", "Healthy", "Unhealthy", "Failed"

_MAX_PORT_ATTEMPTS = 10
_APPLY_S = 10.0  # for workers to apply a change; a busy worker applies it later

F = TypeVar("F", bound=Callable[..., Any])


def _serialized(method: F) -> F:
    @functools.wraps(method)
    def locked(self: ServiceManager, *args: Any, **kwargs: Any) -> Any:
        with self._changing:
            return method(self, *args, **kwargs)

    return cast(F, locked)


class ServiceManager:
    """Methods return quickly; the progress of a deployment is visible in the service's state."""

    def __init__(self, components: Components, models: Models) -> None:
        self._components, self._models = components, models
        self.store = ServiceStore(components.database)
        self._root = HomeFolder(components.home).services
        self._supervisors: dict[str, SupervisorClient] = {}
        self._deploying: dict[str, tuple[threading.Event, threading.Thread]] = {}
        self.activities: dict[str, str] = {}  # current step of each deployment
        self._number_lock = threading.Lock()
        self._changing = threading.RLock()  # a second change of a service must see the first
        self._number = int(clock.now())  # above every number of an earlier yard of this home
        self._stopped = threading.Event()
        self._any_port: set[str] = set()  # services whose port may still change, because they have never served
        self.history = History()
        models.set_user_lookup(self._services_by_model)

    def start(self) -> None:
        """Recover after a restart: resume deployments, finish deletions, restart supervisors."""
        self._root.mkdir(exist_ok=True)
        records = {record.name: record for record in self.store.all()}
        for folder in map(ServiceFolder, self._root.iterdir()):
            if folder.deleted_marker.exists():
                self.store.remove(folder.root.name)
                records.pop(folder.root.name, None)
                self._remove(SupervisorClient(folder))
            elif folder.root.name not in records:  # the database was restored from a backup: keep serving
                log.warning("the service in %s is not in the database and is left unchanged", folder.root)
        for record in records.values():
            unfinished = [v for v in self.store.versions(record.name) if v.state == TRANSITIONING]
            if unfinished:
                self._start_deployment(
                    record.name,
                    unfinished[-1],
                    deployment.interrupted_traffic(self.supervisor(record.name), unfinished[-1]),
                )
                continue
            self.supervisor(record.name).ensure_running()
            if record.state == TRANSITIONING:  # the yard was killed between two updates
                state = HEALTHY if record.traffic else FAILED
                self.store.change(
                    record.name, state=state, error=record.error or "the yard stopped during the deployment"
                )
        ServiceMonitor(self, self._stopped).start()

    def stop(self) -> None:
        """Stop monitoring when the yard stops; services keep running."""
        self._stopped.set()

    @property
    def busy(self) -> bool:
        """A yard with running services does not stop when idle, because it monitors them."""
        return any(client.is_running() for client in list(self._supervisors.values())) or bool(self._deploying)

    def is_deploying(self, name: str) -> bool:
        return name in self._deploying

    def supervisor(self, name: str) -> SupervisorClient:
        return self._supervisors.setdefault(
            name, SupervisorClient(ServiceFolder(self._root / name), self._components.node_package)
        )

    @_serialized
    def deploy(self, request: DeployService) -> ServiceRecord:
        name = validation.validate_name(request.name)
        validation.validate_kind(request.kind)
        configuration = validation.parse_configuration(request.configuration)
        keys = [key for key in map(validation.validate_key, request.keys) if key]
        existing = self.store.find(name)
        if existing is not None and not request.overwrite:
            raise WebserviceException(
                f"a service named {name!r} already exists",
                hint=f"runyard deploy {name} … --update, or service.update(…), changes it without downtime; "
                f"deploy(…, overwrite=True) replaces it; runyard services delete {name} frees the name",
            )
        spec = from_json(VersionSpec, request.spec)
        models = validation.find_models(self._models, request.models)
        validation.validate_spec(self._components, self._models, models, spec)
        model_ids: list[list[Any]] = [[model.name, model.version] for model in models]
        if existing is not None:
            return self._replace(existing, request, configuration, model_ids)
        port = free_port(configuration.host, configuration.port, self._ports())
        self._any_port = {*self._any_port - {name}, *([] if configuration.port else [name])}
        now = clock.now()
        record = ServiceRecord(
            name=name,
            kind=request.kind,
            state=TRANSITIONING,
            configuration=to_json(replace(configuration, port=port)),
            created_at=now,
            changed_at=now,
            description=request.description,
            tags=request.tags,
            properties=request.properties,
            created_by=request.created_by,
        )
        if not self.store.add(record):
            return self.deploy(request)  # a concurrent request has created it
        try:
            self._store_keys(name, [*keys, new_key(), new_key()][:2])
            version = self.store.add_version(name, model_ids, request.spec)
        except BaseException:  # such as a full disk: the name would be in use without a deployment
            self.store.remove(name)
            self._remove(self.supervisor(name))
            raise
        self._start_deployment(name, version, {str(version.version): 100})
        return self.store.get(name)

    @_serialized
    def change(self, name: str, request: ChangeService) -> ServiceRecord:
        record = self.store.get(name)
        if request.configuration or request.models is not None or request.spec is not None:
            self._check_not_deploying(name)  # else its version is no longer desired, and the deployment waits forever
        values = {
            k: v for k, v in asdict(request).items() if k in ("description", "tags", "properties") and v is not None
        }
        if request.configuration:
            merged = {**record.configuration, **request.configuration}
            merged["limits"] = {**record.configuration.get("limits", {}), **request.configuration.get("limits", {})}
            configuration = validation.parse_configuration(merged)
            values["configuration"] = to_json(replace(configuration, port=self._port(record, configuration)))
        if values:
            record = self.store.change(name, **values)
        if request.models is not None or request.spec is not None:
            version = self._new_version(record, request.models, request.spec)
            self._start_deployment(name, version, {str(version.version): 100})
        elif "configuration" in values:
            self._apply(record)
        self.notify()
        return self.store.get(name)

    @_serialized
    def add_version(self, name: str, request: NewVersion) -> VersionRecord:
        record = self.store.get(name)
        share = validation.validate_share(request.traffic_percentile)
        validation.validate_socket_path(name, self.supervisor(name).folder.socket(record.last_version + 1))
        version = self._new_version(record, request.models, request.spec)
        self._start_deployment(name, version, validation.with_share(record.traffic, str(version.version), share))
        return version

    @_serialized
    def set_traffic(self, name: str, traffic: dict[str, int]) -> ServiceRecord:
        record = self.store.get(name)
        ready = {str(v.version) for v in self.store.versions(name) if v.state == HEALTHY}
        absent = [version for version in traffic if version not in ready]
        if absent:
            raise WebserviceException(
                f"version {', '.join(absent)} of {name!r} is not serving",
                hint=f"serving versions: {', '.join(sorted(ready)) or 'none'}; see runyard services show {name}",
            )
        self._check_not_deploying(name)
        shares = {version: share for version, share in validation.validate_traffic(traffic).items() if share}
        supervisor = self.supervisor(name)
        generation = supervisor.change(lambda state: replace(state, traffic=shares))
        deployment.wait_until_applied(supervisor, generation, _APPLY_S)
        for version in set(record.traffic) - set(shares):
            self.store.change_version(name, int(version), state=RETIRED)
        changed = self.store.change(name, traffic=shares)
        self.notify()
        return changed

    def delete(self, name: str) -> None:
        self._cancel_deployment(name)
        with self._changing:  # a new service of the same name must not lose its folder
            self.store.get(name)
            self._cancel_deployment(name)
            # marked first: if the yard is killed, the next one finishes the deletion
            supervisor = self.supervisor(name)
            with suppress(FileNotFoundError):
                supervisor.folder.deleted_marker.touch()
            self.store.remove(name)
            self._remove(supervisor)
            self._supervisors.pop(name, None)
            self.history.forget(name)
        self.notify()

    def keys(self, name: str) -> tuple[str, str]:
        self.store.get(name)
        state = self.supervisor(name).desired_state()
        if state is None or len(state.keys) != 2:
            raise WebserviceException(f"the service {name!r} has no keys yet")
        return state.keys[0], state.keys[1]

    def set_key(self, name: str, key_name: str, value: str | None) -> tuple[str, str]:
        self.keys(name)
        index, key = validation.key_index(key_name), validation.validate_key(value) or new_key()
        supervisor = self.supervisor(name)
        generation = supervisor.change(lambda state: validation.with_key(state, index, key))
        deployment.wait_until_applied(supervisor, generation, _APPLY_S)
        return self.keys(name)

    @property
    def change_number(self) -> int:
        """Increases with every change, so that clients can wait for news."""
        return self._number

    def state(self, record: ServiceRecord, status: dict[str, Any]) -> str:
        if record.name in self._deploying:  # until the very end: a client that sees another state may start a change
            return TRANSITIONING
        if record.state != HEALTHY:
            return record.state
        return HEALTHY if deployment.serves(status, record.traffic) else UNHEALTHY

    def _replace(
        self,
        existing: ServiceRecord,
        request: DeployService,
        configuration: ServiceConfiguration,
        models: list[list[Any]],
    ) -> ServiceRecord:
        """Deploy a new version under the same name; the old version serves until the new one does."""
        self._check_not_deploying(existing.name)
        port = self._port(existing, configuration)
        self.store.change(
            existing.name,
            kind=request.kind,
            configuration=to_json(replace(configuration, port=port)),
            description=request.description,
            tags=request.tags,
            properties=request.properties,
        )
        if request.keys:
            self._store_keys(existing.name, [*request.keys, new_key()][:2])
        version = self.store.add_version(existing.name, models, request.spec)
        self._start_deployment(existing.name, version, {str(version.version): 100})
        return self.store.get(existing.name)

    def _new_version(
        self, record: ServiceRecord, models: Sequence[str] | None, spec: dict[str, Any] | None
    ) -> VersionRecord:
        self._check_not_deploying(record.name)
        versions = [v for v in self.store.versions(record.name) if str(v.version) in record.traffic]
        all_versions = self.store.versions(record.name)
        newest = all_versions[-1] if all_versions else None
        before = max(versions, key=lambda v: record.traffic[str(v.version)], default=newest)
        if models is not None:
            records = validation.find_models(self._models, models)
        else:
            records = [self._models.get(name, number) for name, number in (before.models if before else [])]
        description = spec if spec is not None else (before.spec if before else {})
        validation.validate_spec(self._components, self._models, records, from_json(VersionSpec, description))
        return self.store.add_version(record.name, [[model.name, model.version] for model in records], description)

    def _check_not_deploying(self, name: str) -> None:
        if name in self._deploying:
            raise WebserviceException(
                f"the service {name!r} is being deployed", hint="wait for it with service.wait_for_deployment()"
            )

    def _start_deployment(self, name: str, version: VersionRecord, traffic: dict[str, int]) -> None:
        canceled = threading.Event()
        thread = threading.Thread(
            target=self._deploy, args=(name, version, traffic, canceled), name=f"deploy {name}", daemon=True
        )
        self._deploying[name] = (canceled, thread)
        self.notify()
        thread.start()

    def _deploy(self, name: str, version: VersionRecord, traffic: dict[str, int], canceled: threading.Event) -> None:
        supervisor = self.supervisor(name)
        write = deployment.log_writer(supervisor.folder, version.version)

        def report(text: str) -> None:
            write(text)
            self.activities[name] = text
            self.notify()

        try:
            supervisor.folder.root.mkdir(parents=True, exist_ok=True)
            key = deployment.prepare(self._components, self._models, version, supervisor, report, canceled)
            self.store.change_version(name, version.version, environment_key=key)
            self._bring_up(name, version.version, traffic, report, canceled)
            self._finish(name, version, traffic, report)
        except RunyardException as error:
            report(f"failed: {error.message}")
            self._fail(name, version, str(error))
        except Exception as error:  # the edge of the thread: otherwise the service would stay in Transitioning
            log.exception("deploying %s", name)
            report(f"failed: {type(error).__name__}: {error}")
            self._fail(name, version, f"the yard failed: {type(error).__name__}: {error}")
        finally:
            self._deploying.pop(name, None)
            self.activities.pop(name, None)
            self.notify()

    def _bring_up(
        self,
        name: str,
        version: int,
        traffic: dict[str, int],
        report: deployment.ProgressCallback,
        canceled: threading.Event,
    ) -> None:
        previous_traffic = self.store.get(name).traffic
        state = deployment.desired_state(self.supervisor(name), self.store.get(name), traffic)
        for attempt in range(_MAX_PORT_ATTEMPTS):
            try:
                deployment.bring_up(self.supervisor(name), state, version, previous_traffic, report, canceled)
                return
            except deployment.CannotListen:
                if name not in self._any_port or attempt == _MAX_PORT_ATTEMPTS - 1:
                    raise
                used = {**self._ports(), state.port: name}
                state = replace(state, port=free_port(state.host, 0, used))
                record = self.store.get(name)
                self.store.change(name, configuration={**record.configuration, "port": state.port})

    def _finish(
        self, name: str, version: VersionRecord, traffic: dict[str, int], report: deployment.ProgressCallback
    ) -> None:
        serving = {number: share for number, share in traffic.items() if share or number == str(version.version)}
        self._any_port.discard(name)
        self.store.change(name, state=HEALTHY, error="", traffic=serving)
        for old in self.store.versions(name):
            if old.state == HEALTHY and str(old.version) not in serving:
                self.store.change_version(name, old.version, state=RETIRED)
        # last: if the yard is killed before this, the next one repeats all of these updates
        self.store.change_version(name, version.version, state=HEALTHY, error="")
        report("serving")

    def _fail(self, name: str, version: VersionRecord, reason: str) -> None:
        if self.store.find(name) is None:  # deleted in the meantime
            return
        self.store.change_version(name, version.version, state=FAILED, error=reason)
        record = self.store.get(name)
        # a previous version keeps serving: only the new version has failed
        self.store.change(name, state=HEALTHY if record.traffic else FAILED, error=reason)

    def _apply(self, record: ServiceRecord) -> None:
        if record.traffic:
            supervisor = self.supervisor(record.name)
            supervisor.apply(deployment.desired_state(supervisor, record, record.traffic))

    def _store_keys(self, name: str, keys: list[str]) -> None:
        supervisor = self.supervisor(name)
        supervisor.folder.root.mkdir(parents=True, exist_ok=True)
        supervisor.folder.deleted_marker.unlink(missing_ok=True)
        record = self.store.get(name)
        state = deployment.desired_state(supervisor, record, record.traffic)
        supervisor.store(replace(state, keys=tuple(keys)))

    def _services_by_model(self) -> dict[tuple[str, int], set[str]]:
        """Names of the services that use each model version."""
        services: dict[tuple[str, int], set[str]] = {}
        for service_version in self.store.versions():
            if service_version.state in (HEALTHY, TRANSITIONING):
                for name, version in service_version.models:
                    services.setdefault((str(name), int(version)), set()).add(service_version.name)
        return services

    def _ports(self) -> dict[int, str]:
        return {int(record.configuration["port"]): record.name for record in self.store.all()}

    def _port(self, record: ServiceRecord, configuration: ServiceConfiguration) -> int:
        """The current port, or a free one if the address changes."""
        port, used = int(record.configuration["port"]), self._ports()
        if configuration.host == record.configuration["host"] and configuration.port in (0, port):
            return port
        used.pop(port, None)  # test it by binding: 0.0.0.0 cannot be bound while 127.0.0.1 is in use
        return free_port(configuration.host, configuration.port, used)

    def _cancel_deployment(self, name: str) -> None:
        canceled, thread = self._deploying.get(name, (None, None))
        if canceled is not None and thread is not None:
            canceled.set()
            thread.join(60.0)

    def _remove(self, supervisor: SupervisorClient) -> None:
        supervisor.stop()
        shutil.rmtree(supervisor.folder.root, ignore_errors=True)

    def notify(self) -> None:
        with self._number_lock:
            self._number += 1
