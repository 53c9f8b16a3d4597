"""How SSH hosts are checked before they are kept as a target, and made of what was kept."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.compute.base import Capacity, Compute
from runyard.compute.local.compute import LocalCompute
from runyard.compute.scheduling.queue import Queue
from runyard.compute.ssh.compute import SshCompute
from runyard.compute.ssh.host import Hooks, Host
from runyard.compute.ssh.host_queue import HostQueue, Place
from runyard.compute.ssh.openssh import Address, checked_address
from runyard.errors import ComputeTargetException, RunyardException
from runyard.spec.json import from_json, to_json

KINDS = ("Ssh", "Remote")  # "Remote": one host, as the SDK v1 calls it
FOUND = "found"  # in the configuration: what the hosts had when they were attached, in their order
_KNOWN = frozenset({"hosts", "key", "folder", "slots", FOUND})


def make(
    name: str, configuration: dict[str, Any], home: Path, kit: Path, hooks: Hooks, local: LocalCompute
) -> tuple[Compute, Queue]:
    """Asks nobody: hosts may be away while the yard starts."""
    hosts = _hosts(configuration, home, kit, hooks)
    found = configuration.get(FOUND, [{}] * len(hosts))
    slots = configuration.get("slots")
    capacities = [_bounded(from_json(Capacity, facts["capacity"]), slots) for facts in found]
    places = [Place(host.name, has, _why_not(host)) for host, has in zip(hosts, capacities)]
    return SshCompute(hosts, capacities, kit=kit, local=local), HostQueue(name, places)


def check(name: str, configuration: dict[str, Any], home: Path, kit: Path) -> dict[str, Any]:
    """Every host is logged in to: what does not work is said now, with the host's name, and nothing is kept."""
    unknown = sorted(set(configuration) - _KNOWN)
    if unknown:
        raise ComputeTargetException(
            f"{name!r}: SSH hosts have no {', '.join(map(repr, unknown))}", hint="they have hosts, key, folder, slots"
        )
    texts = [str(text) for text in configuration.get("hosts") or ()]
    if not texts:
        raise ComputeTargetException(f"{name!r} has no hosts", hint="hosts=['user@h1', 'user@h2']")
    twice = sorted({text for text in texts if texts.count(text) > 1})
    if twice:
        raise ComputeTargetException(f"{', '.join(twice)} is named twice", hint="name each host once")
    for text in texts:
        checked_address(text, str(configuration.get("key") or ""))
    hosts = _hosts(configuration, home, kit, Hooks(lambda run_id: None, lambda run_id, text: None, lambda: None))
    try:
        with ThreadPoolExecutor(min(len(hosts), 16), "look") as pool:
            looked = list(pool.map(_look_at, hosts))
    finally:
        for host in hosts:
            host.close()
    problems = [error for error in looked if isinstance(error, RunyardException)]
    if problems:
        raise ComputeTargetException(
            "; ".join(error.message for error in problems),
            hint="; ".join(dict.fromkeys(e.hint for e in problems if e.hint)),
        )
    found = [facts for facts in looked if not isinstance(facts, RunyardException)]
    _refuse_one_machine_twice(texts, found)
    return {**configuration, FOUND: found}


def _hosts(configuration: dict[str, Any], home: Path, kit: Path, hooks: Hooks) -> list[Host]:
    key, folder = str(configuration.get("key") or ""), str(configuration.get("folder") or "")
    addresses = [Address(str(text), key) for text in configuration["hosts"]]
    seen = [str(facts["address"]) for facts in configuration.get(FOUND, ())] or [""] * len(addresses)
    return [
        Host(address, home=home, kit=kit, hooks=hooks, folder=folder, seen_at=at)
        for address, at in zip(addresses, seen)
    ]


def _look_at(host: Host) -> dict[str, Any] | RunyardException:
    try:
        facts = host.facts
    except RunyardException as error:
        return error
    told = ("name", "address", "machine", "system", "python", "version", "capacity", "folder", "id")
    return {key: to_json(facts[key]) for key in told}


def _refuse_one_machine_twice(texts: list[str], found: list[dict[str, Any]]) -> None:
    """Two names of one machine would count its processors twice, and two nodes of a gang would meet in one folder."""
    seen: dict[str, str] = {}
    for text, facts in zip(texts, found):
        other = seen.setdefault(str(facts["id"]), text)
        if other != text:
            raise ComputeTargetException(f"{other} and {text} are one and the same machine", hint="name it once")


def _bounded(capacity: Capacity, slots: int | None) -> Capacity:
    return capacity if slots is None else replace(capacity, cpus=int(slots))


def _why_not(host: Host) -> Callable[[], str]:
    return lambda: f"cannot be reached ({host.trouble})" if host.trouble and host.away_since is not None else ""
