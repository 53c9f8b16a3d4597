"""Looking after services: keepers that are gone are started again, numbers are noted, what is left over is removed."""

from __future__ import annotations

import logging
import shutil
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from runyard.serving.supervisor_client import Keeping
from runyard.store.services import RETIRED, ServiceRecord

if TYPE_CHECKING:
    from runyard.serving.manager import Services

log = logging.getLogger(__name__)
_LOOK_S = 1.0


class Lookout(threading.Thread):
    def __init__(self, services: Services, ended: threading.Event) -> None:
        super().__init__(name="services", daemon=True)
        self._services, self._ended = services, ended
        self._states: dict[str, str] = {}

    def run(self) -> None:
        while not self._ended.wait(_LOOK_S):
            try:
                records = self._services.store.all()
            except Exception:  # a disk that is full today must not leave services unattended tomorrow
                if not self._ended.is_set():
                    log.exception("looking after services")
                continue
            for record in records:
                try:
                    self._look_at(record)
                except Exception:  # nor one service all those after it
                    if not self._ended.is_set():
                        log.exception("looking after the service %s", record.name)

    def _look_at(self, record: ServiceRecord) -> None:
        services = self._services
        keeping, busy = services.keeping(record.name), services.is_deploying(record.name)
        if not busy and keeping.look_after():
            log.warning("the keeper of service %s was gone and is started again", record.name)
        services.history.sample(record.name, keeping.folder.counts)
        state = services.state(record, keeping.found())
        if self._states.get(record.name) != state:
            self._states[record.name] = state
            services.notify()
        if not busy:
            self._tidy(record, keeping)

    def _tidy(self, record: ServiceRecord, keeping: Keeping) -> None:
        """Code and models of versions that serve no more."""
        here = keeping.folder.root / "versions"
        known = keeping.found().get("versions", {})
        gone = {str(v.version) for v in self._services.store.versions(record.name) if v.state in (RETIRED, "Failed")}
        for folder in here.iterdir() if here.is_dir() else ():
            if folder.name in gone and folder.name not in known and folder.name not in record.traffic:
                with suppress(OSError):
                    shutil.rmtree(folder)
