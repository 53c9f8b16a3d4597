"""Monitors services: restarts dead supervisors, samples counters, removes files of retired versions."""

from __future__ import annotations

import logging
import shutil
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from runyard.serving.supervisor_client import SupervisorClient
from runyard.store.services import RETIRED, ServiceRecord

if TYPE_CHECKING:
    from runyard.serving.manager import ServiceManager

log = logging.getLogger(__name__)
_POLL_S = 1.0


class ServiceMonitor(threading.Thread):
    def __init__(self, services: ServiceManager, stopped: threading.Event) -> None:
        super().__init__(name="services", daemon=True)
        self._services, self._stopped = services, stopped
        self._states: dict[str, str] = {}

    def run(self) -> None:
        while not self._stopped.wait(_POLL_S):
            try:
                records = self._services.store.all()
            except Exception:  # a temporary problem such as a full disk must not end the monitoring
                if not self._stopped.is_set():
                    log.exception("monitoring services")
                continue
            for record in records:
                try:
                    self._check(record)
                except Exception:  # one service must not affect the others
                    if not self._stopped.is_set():
                        log.exception("monitoring the service %s", record.name)

    def _check(self, record: ServiceRecord) -> None:
        services = self._services
        supervisor, busy = services.supervisor(record.name), services.is_deploying(record.name)
        if not busy and supervisor.ensure_running():
            log.warning("the supervisor of service %s had ended and was restarted", record.name)
        services.history.sample(record.name, supervisor.folder.counts)
        state = services.state(record, supervisor.status())
        if self._states.get(record.name) != state:
            self._states[record.name] = state
            services.notify()
        if not busy:
            self._remove_retired(record, supervisor)

    def _remove_retired(self, record: ServiceRecord, supervisor: SupervisorClient) -> None:
        """Delete code and models of versions that no longer serve."""
        versions = supervisor.folder.root / "versions"
        active = supervisor.status().get("versions", {})
        retired = {str(v.version) for v in self._services.store.versions(record.name) if v.state in (RETIRED, "Failed")}
        for folder in versions.iterdir() if versions.is_dir() else ():
            if folder.name in retired and folder.name not in active and folder.name not in record.traffic:
                with suppress(OSError):
                    shutil.rmtree(folder)
