"""All services of a yard: deployed, changed, asked about, deleted; each change in a thread of its own."""

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
from runyard.orchestrator.components import Rooms
from runyard.serving import deployment, validation
from runyard.serving.history import History
from runyard.serving.monitor import Lookout
from runyard.serving.supervisor_client import Keeping, free_port, new_key
from runyard.spec.folder import HomeFolder
from runyard.spec.json import from_json, to_json
from runyard.spec.service import ServiceConfiguration, ServiceFolder, VersionSpec
from runyard.store.services import RETIRED, ServiceRecord, ServiceStore, VersionRecord
from runyard.wire.services import ChangeService, DeployService, NewVersion

log = logging.getLogger(__name__)
TRANSITIONING, HEALTHY, UNHEALTHY, FAILED = "Transitioning", "Healthy", "Unhealthy", "Failed"

_PORTS_TRIED = 10
_SETTLES_S = 10.0  # for workers to hear of a change; one that does not was busy, and hears of it later

F = TypeVar("F", bound=Callable[..., Any])


def _one_at_a_time(method: F) -> F:
    @functools.wraps(method)
    def locked(self: Services, *args: Any, **kwargs: Any) -> Any:
        with self._changing:
            return method(self, *args, **kwargs)

    return cast(F, locked)


class Services:
    """Blocks only as long as a row takes; what takes longer is said by a service's state."""

    def __init__(self, rooms: Rooms, models: Models) -> None:
        self._rooms, self._models = rooms, models
        self.store = ServiceStore(rooms.database)
        self._root = HomeFolder(rooms.home).services
        self._kept: dict[str, Keeping] = {}
        self._deploying: dict[str, tuple[threading.Event, threading.Thread]] = {}
        self.doing: dict[str, str] = {}  # of services that are being deployed: at what it is
        self._counting = threading.Lock()
        self._changing = threading.RLock()  # of two changes of one service, the second finds that there is a first
        self._number = int(clock.now())  # above all that a former yard of this home has told
        self._ended = threading.Event()
        self._any_port: set[str] = set()  # services that may be anywhere, as long as they have not been somewhere
        self.history = History()
        models.watch_use(self._using)

    def start(self) -> None:
        """What a former yard left: services go on, deployments begin again, what was deleted is taken away."""
        self._root.mkdir(exist_ok=True)
        known = {record.name: record for record in self.store.all()}
        for folder in map(ServiceFolder, self._root.iterdir()):
            if folder.deleted.exists():
                self.store.remove(folder.root.name)
                known.pop(folder.root.name, None)
                self._take_away(Keeping(folder))
            elif folder.root.name not in known:  # of a database that was put back: what serves goes on
                log.warning("the service of %s is not in the database: it is left as it is", folder.root)
        for record in known.values():
            unfinished = [v for v in self.store.versions(record.name) if v.state == TRANSITIONING]
            if unfinished:
                self._go(record.name, unfinished[-1], deployment.begun(self.keeping(record.name), unfinished[-1]))
                continue
            self.keeping(record.name).look_after()
            if record.state == TRANSITIONING:  # killed between two of its rows
                state = HEALTHY if record.traffic else FAILED
                self.store.change(record.name, state=state, error=record.error or "the yard ended as it was deployed")
        Lookout(self, self._ended).start()

    def stop(self) -> None:
        """Of the yard: services go on."""
        self._ended.set()

    @property
    def are_there(self) -> bool:
        """A yard with services stays, to look after them."""
        return any(keeping.is_kept() for keeping in list(self._kept.values())) or bool(self._deploying)

    def is_deploying(self, name: str) -> bool:
        return name in self._deploying

    def keeping(self, name: str) -> Keeping:
        return self._kept.setdefault(name, Keeping(ServiceFolder(self._root / name)))

    @_one_at_a_time
    def deploy(self, request: DeployService) -> ServiceRecord:
        name = validation.checked_name(request.name)
        validation.checked_kind(request.kind)
        configuration = validation.checked_configuration(request.configuration)
        keys = [key for key in map(validation.checked_key, request.keys) if key]
        existing = self.store.find(name)
        if existing is not None and not request.overwrite:
            raise WebserviceException(
                f"a service named {name!r} is here already",
                hint=f"runyard deploy {name} … --update, or service.update(…), changes it without a pause; "
                f"deploy(…, overwrite=True) replaces it; runyard services delete {name} frees the name",
            )
        spec = from_json(VersionSpec, request.spec)
        chosen = validation.chosen_models(self._models, request.models)
        validation.checked_spec(self._rooms, self._models, chosen, spec)
        if existing is not None:
            return self._replaced(existing, request, configuration, [[one.name, one.version] for one in chosen])
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
            return self.deploy(request)  # somebody else was faster, so the name is taken now
        try:
            self._keep_keys(name, [*keys, new_key(), new_key()][:2])
            version = self.store.add_version(name, [[one.name, one.version] for one in chosen], request.spec)
        except BaseException:  # a full disk: the name would be taken, with nobody who deploys it
            self.store.remove(name)
            self._take_away(self.keeping(name))
            raise
        self._go(name, version, {str(version.version): 100})
        return self.store.get(name)

    @_one_at_a_time
    def change(self, name: str, request: ChangeService) -> ServiceRecord:
        record = self.store.get(name)
        if request.configuration or request.models is not None or request.spec is not None:
            self._steady(name)  # or the version on its way is wanted no more, and its deployment waits for ever
        values = {
            k: v for k, v in asdict(request).items() if k in ("description", "tags", "properties") and v is not None
        }
        if request.configuration:
            merged = {**record.configuration, **request.configuration}
            merged["limits"] = {**record.configuration.get("limits", {}), **request.configuration.get("limits", {})}
            configuration = validation.checked_configuration(merged)
            values["configuration"] = to_json(replace(configuration, port=self._port(record, configuration)))
        if values:
            record = self.store.change(name, **values)
        if request.models is not None or request.spec is not None:
            version = self._new_version(record, request.models, request.spec)
            self._go(name, version, {str(version.version): 100})
        elif "configuration" in values:
            self._apply(record)
        self.notify()
        return self.store.get(name)

    @_one_at_a_time
    def add_version(self, name: str, request: NewVersion) -> VersionRecord:
        record = self.store.get(name)
        share = validation.checked_share(request.traffic_percentile)
        validation.checked_socket(name, self.keeping(name).folder.socket(record.last_version + 1))
        version = self._new_version(record, request.models, request.spec)
        self._go(name, version, validation.with_share(record.traffic, str(version.version), share))
        return version

    @_one_at_a_time
    def set_traffic(self, name: str, traffic: dict[str, int]) -> ServiceRecord:
        record = self.store.get(name)
        ready = {str(v.version) for v in self.store.versions(name) if v.state == HEALTHY}
        absent = [version for version in traffic if version not in ready]
        if absent:
            raise WebserviceException(
                f"version {', '.join(absent)} of {name!r} does not serve",
                hint=f"versions that do: {', '.join(sorted(ready)) or 'none'}; runyard services show {name} says more",
            )
        self._steady(name)
        kept = {version: share for version, share in validation.checked_traffic(traffic).items() if share}
        keeping = self.keeping(name)
        deployment.settle(keeping, keeping.change(lambda wanted: replace(wanted, traffic=kept)), _SETTLES_S)
        for version in set(record.traffic) - set(kept):
            self.store.change_version(name, int(version), state=RETIRED)
        changed = self.store.change(name, traffic=kept)
        self.notify()
        return changed

    def delete(self, name: str) -> None:
        self._abandon(name)
        with self._changing:  # a service of the same name that is deployed meanwhile must not lose its folder
            self.store.get(name)
            self._abandon(name)
            # marked first: a yard that is killed in the middle leaves a folder that the next one takes away
            keeping = self.keeping(name)
            with suppress(FileNotFoundError):
                keeping.folder.deleted.touch()
            self.store.remove(name)
            self._take_away(keeping)
            self._kept.pop(name, None)
            self.history.forget(name)
        self.notify()

    def keys(self, name: str) -> tuple[str, str]:
        self.store.get(name)
        wanted = self.keeping(name).wanted()
        if wanted is None or len(wanted.keys) != 2:
            raise WebserviceException(f"the service {name!r} has no keys yet")
        return wanted.keys[0], wanted.keys[1]

    def set_key(self, name: str, which: str, value: str | None) -> tuple[str, str]:
        self.keys(name)
        place, key = validation.place_of_key(which), validation.checked_key(value) or new_key()
        keeping = self.keeping(name)
        deployment.settle(keeping, keeping.change(lambda wanted: validation.with_key(wanted, place, key)), _SETTLES_S)
        return self.keys(name)

    @property
    def change_number(self) -> int:
        """Counts what changes: whoever has seen a number has seen everything up to it."""
        return self._number

    def state(self, record: ServiceRecord, found: dict[str, Any]) -> str:
        if record.name in self._deploying:  # to the very end: whoever reads that it is over may change it again
            return TRANSITIONING
        if record.state != HEALTHY:
            return record.state
        return HEALTHY if deployment.serves(found, record.traffic) else UNHEALTHY

    def _replaced(
        self,
        existing: ServiceRecord,
        request: DeployService,
        configuration: ServiceConfiguration,
        models: list[list[Any]],
    ) -> ServiceRecord:
        """The same name, all else as asked for; the old version serves until the new one does."""
        self._steady(existing.name)
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
            self._keep_keys(existing.name, [*request.keys, new_key()][:2])
        version = self.store.add_version(existing.name, models, request.spec)
        self._go(existing.name, version, {str(version.version): 100})
        return self.store.get(existing.name)

    def _new_version(
        self, record: ServiceRecord, models: Sequence[str] | None, spec: dict[str, Any] | None
    ) -> VersionRecord:
        self._steady(record.name)
        versions = [v for v in self.store.versions(record.name) if str(v.version) in record.traffic]
        every = self.store.versions(record.name)
        before = max(versions, key=lambda v: record.traffic[str(v.version)], default=every[-1] if every else None)
        if models is not None:
            chosen = validation.chosen_models(self._models, models)
        else:
            chosen = [self._models.get(name, number) for name, number in (before.models if before else [])]
        described = spec if spec is not None else (before.spec if before else {})
        validation.checked_spec(self._rooms, self._models, chosen, from_json(VersionSpec, described))
        return self.store.add_version(record.name, [[one.name, one.version] for one in chosen], described)

    def _steady(self, name: str) -> None:
        if name in self._deploying:
            raise WebserviceException(
                f"the service {name!r} is being deployed just now", hint="service.wait_for_deployment() waits for it"
            )

    def _go(self, name: str, version: VersionRecord, traffic: dict[str, int]) -> None:
        ends = threading.Event()
        thread = threading.Thread(
            target=self._deploy, args=(name, version, traffic, ends), name=f"deploy {name}", daemon=True
        )
        self._deploying[name] = (ends, thread)
        self.notify()
        thread.start()

    def _deploy(self, name: str, version: VersionRecord, traffic: dict[str, int], ends: threading.Event) -> None:
        keeping = self.keeping(name)
        write = deployment.writer(keeping.folder, version.version)

        def say(text: str) -> None:
            write(text)
            self.doing[name] = text
            self.notify()

        try:
            keeping.folder.root.mkdir(parents=True, exist_ok=True)
            key = deployment.prepare(self._rooms, self._models, version, keeping, say, ends)
            self.store.change_version(name, version.version, environment_key=key)
            self._bring_up(name, version.version, traffic, say, ends)
            self._finished(name, version, traffic, say)
        except RunyardException as error:
            say(f"failed: {error.message}")
            self._failed(name, version, str(error))
        except Exception as error:  # the edge of the thread: a service that is stuck for ever leaves a riddle
            log.exception("deploying %s", name)
            say(f"failed: {type(error).__name__}: {error}")
            self._failed(name, version, f"the yard failed: {type(error).__name__}: {error}")
        finally:
            self._deploying.pop(name, None)
            self.doing.pop(name, None)
            self.notify()

    def _bring_up(
        self, name: str, version: int, traffic: dict[str, int], say: deployment.Say, ends: threading.Event
    ) -> None:
        served = self.store.get(name).traffic
        wanted = deployment.wanted(self.keeping(name), self.store.get(name), traffic)
        for attempt in range(_PORTS_TRIED):
            try:
                deployment.bring_up(self.keeping(name), wanted, version, served, say, ends)
                return
            except deployment.CannotListen:
                if name not in self._any_port or attempt == _PORTS_TRIED - 1:
                    raise
                taken = {**self._ports(), wanted.port: name}
                wanted = replace(wanted, port=free_port(wanted.host, 0, taken))
                record = self.store.get(name)
                self.store.change(name, configuration={**record.configuration, "port": wanted.port})

    def _finished(self, name: str, version: VersionRecord, traffic: dict[str, int], say: deployment.Say) -> None:
        serving = {number: share for number, share in traffic.items() if share or number == str(version.version)}
        self._any_port.discard(name)
        self.store.change(name, state=HEALTHY, error="", traffic=serving)
        for old in self.store.versions(name):
            if old.state == HEALTHY and str(old.version) not in serving:
                self.store.change_version(name, old.version, state=RETIRED)
        # last: a yard that is killed above finds a version that is not finished, and finishes all of it
        self.store.change_version(name, version.version, state=HEALTHY, error="")
        say("it serves")

    def _failed(self, name: str, version: VersionRecord, why: str) -> None:
        if self.store.find(name) is None:  # deleted meanwhile
            return
        self.store.change_version(name, version.version, state=FAILED, error=why)
        record = self.store.get(name)
        # what served before goes on, so the service is as well as it was: it is the version that failed
        self.store.change(name, state=HEALTHY if record.traffic else FAILED, error=why)

    def _apply(self, record: ServiceRecord) -> None:
        if record.traffic:
            keeping = self.keeping(record.name)
            keeping.want(deployment.wanted(keeping, record, record.traffic))

    def _keep_keys(self, name: str, keys: list[str]) -> None:
        keeping = self.keeping(name)
        keeping.folder.root.mkdir(parents=True, exist_ok=True)
        keeping.folder.deleted.unlink(missing_ok=True)
        record = self.store.get(name)
        keeping.keep(replace(deployment.wanted(keeping, record, record.traffic), keys=tuple(keys)))

    def _using(self) -> dict[tuple[str, int], set[str]]:
        """Which services use which version of which model."""
        found: dict[tuple[str, int], set[str]] = {}
        for one in self.store.versions():
            if one.state in (HEALTHY, TRANSITIONING):
                for name, version in one.models:
                    found.setdefault((str(name), int(version)), set()).add(one.name)
        return found

    def _ports(self) -> dict[int, str]:
        return {int(record.configuration["port"]): record.name for record in self.store.all()}

    def _port(self, record: ServiceRecord, configuration: ServiceConfiguration) -> int:
        """Where it is, unless it shall be elsewhere: then a port that is free there."""
        port, taken = int(record.configuration["port"]), self._ports()
        if configuration.host == record.configuration["host"] and configuration.port in (0, port):
            return port
        taken.pop(port, None)  # not refused as its own, but tried: 0.0.0.0 cannot be listened at while 127.0.0.1 is
        return free_port(configuration.host, configuration.port, taken)

    def _abandon(self, name: str) -> None:
        ends, thread = self._deploying.get(name, (None, None))
        if ends is not None and thread is not None:
            ends.set()
            thread.join(60.0)

    def _take_away(self, keeping: Keeping) -> None:
        keeping.stop()
        shutil.rmtree(keeping.folder.root, ignore_errors=True)

    def notify(self) -> None:
        with self._counting:
            self._number += 1
