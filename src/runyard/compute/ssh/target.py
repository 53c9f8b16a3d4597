"""The target kind of SSH hosts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from runyard.compute.base import Capacity, Compute
from runyard.compute.kind import Configuration, TargetDeps, TargetKind
from runyard.compute.scheduling.machine_pool import Machine, MachinePool
from runyard.compute.scheduling.queue import Queue
from runyard.compute.ssh.compute import SshCompute
from runyard.compute.ssh.host import Host, HostCallbacks
from runyard.compute.ssh.openssh import Address, checked_address
from runyard.errors import ComputeTargetException, RunyardException
from runyard.spec.json import from_json, to_json

_FACTS = "found"  # the configuration key with the facts that hosts reported when they were attached, in their order
_STORED_FACTS = ("name", "address", "machine", "system", "python", "version", "capacity", "folder", "id")
_OPTIONS = ("hosts", "key", "folder", "slots")


class SshKind(TargetKind):
    title = "SSH hosts"
    discovered = frozenset({_FACTS})

    def create(self, name: str, configuration: Configuration, deps: TargetDeps) -> tuple[Compute, Queue]:
        callbacks = HostCallbacks(deps.run_changed, deps.report, lambda: deps.capacity_changed(name))
        hosts = _hosts(configuration, deps, callbacks)
        capacities = [_capacity(facts, configuration) for facts in configuration.get(_FACTS, [{}] * len(hosts))]
        compute = SshCompute(hosts, capacities, kit=deps.node_package, local=deps.local)
        machines = [
            Machine(unique_name, capacity, host.last_address, lambda host=host: _unavailable(host))  # type: ignore[misc]
            for (unique_name, host), capacity in zip(compute.hosts.items(), capacities)
        ]
        return compute, Queue(MachinePool(name, machines))

    def check(self, name: str, configuration: Configuration, deps: TargetDeps) -> Configuration:
        """Log in to every host, and refuse the target with the names of those that fail."""
        unknown = sorted(set(configuration) - {*_OPTIONS, _FACTS})
        if unknown:
            raise ComputeTargetException(
                f"{name!r}: unknown option {', '.join(map(repr, unknown))} for SSH hosts",
                hint=f"options: {', '.join(_OPTIONS)}",
            )
        addresses = [str(text) for text in configuration.get("hosts") or ()]
        if not addresses:
            raise ComputeTargetException(f"{name!r} has no hosts", hint="hosts=['user@h1', 'user@h2']")
        duplicates = sorted({text for text in addresses if addresses.count(text) > 1})
        if duplicates:
            raise ComputeTargetException(f"duplicate host {', '.join(duplicates)}", hint="name each host once")
        for text in addresses:
            checked_address(text, str(configuration.get("key") or ""))
        hosts = _hosts(configuration, deps, HostCallbacks())
        try:
            with ThreadPoolExecutor(min(len(hosts), 16), "check-hosts") as pool:
                results = list(pool.map(_facts_or_error, hosts))
        finally:
            for host in hosts:
                host.close()
        errors = [result for result in results if isinstance(result, RunyardException)]
        if errors:
            raise ComputeTargetException(
                "; ".join(error.message for error in errors),
                hint="; ".join(dict.fromkeys(error.hint for error in errors if error.hint)),
            )
        facts = [result for result in results if not isinstance(result, RunyardException)]
        _refuse_same_machine(addresses, facts)
        return {**configuration, _FACTS: facts}


def _hosts(configuration: Configuration, deps: TargetDeps, callbacks: HostCallbacks) -> list[Host]:
    key, folder = str(configuration.get("key") or ""), str(configuration.get("folder") or "")
    addresses = [Address(str(text), key) for text in configuration["hosts"]]
    last = [str(facts["address"]) for facts in configuration.get(_FACTS, ())] or [""] * len(addresses)
    return [
        Host(address, home=deps.home, kit=deps.node_package, callbacks=callbacks, folder=folder, last_address=text)
        for address, text in zip(addresses, last)
    ]


def _facts_or_error(host: Host) -> dict[str, Any] | RunyardException:
    try:
        facts = host.facts
    except RunyardException as error:
        return error
    return {key: to_json(facts[key]) for key in _STORED_FACTS}


def _refuse_same_machine(addresses: list[str], facts: list[dict[str, Any]]) -> None:
    """Two names of one machine would count its CPUs twice, and two nodes of a gang would share one folder."""
    first: dict[str, str] = {}
    for address, host_facts in zip(addresses, facts):
        other = first.setdefault(str(host_facts["id"]), address)
        if other != address:
            raise ComputeTargetException(f"{other} and {address} are the same machine", hint="name it once")


def _capacity(facts: dict[str, Any], configuration: Configuration) -> Capacity:
    capacity, slots = from_json(Capacity, facts["capacity"]), configuration.get("slots")
    return capacity if slots is None else replace(capacity, cpus=int(slots))


def _unavailable(host: Host) -> str:
    return f"cannot be reached ({host.problem})" if host.problem and host.unreachable_since is not None else ""
