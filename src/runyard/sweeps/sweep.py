"""One active sweep: proposes children, watches them, stops them early and learns from results.

Its state is rebuilt from the store after a restart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from dataclasses import replace

from runyard.errors import RunNotFound
from runyard.lifecycle import events as on
from runyard.lifecycle.state import TERMINAL, End, EndReason, RunState
from runyard.lifecycle.warning import RunWarning
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.submit import submit
from runyard.spec.sweep import Trial, child_label
from runyard.store.runs import RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps.child_runs import child_request
from runyard.sweeps.early_stopping import EarlyStopping
from runyard.sweeps.metric_reports import MetricReports
from runyard.sweeps.sampling import create_sampler
from runyard.sweeps.sweep_clock import SweepClock
from runyard.sweeps.sweep_log import SweepLog
from runyard.tracking.series import all_series

_WAITING = "Waiting"
_BATCH = 20  # children proposed before other sweeps and cancellations are processed
_ENDING = {RunState.CANCEL_REQUESTED, RunState.FINALIZING, *TERMINAL}  # no further children are proposed


class Sweep:
    def __init__(self, conductor: Conductor, store: SweepStore, sweep_id: str) -> None:
        spec = store.load(sweep_id)
        assert spec is not None
        self._conductor, self._store, self.sweep_id, self.spec = conductor, store, sweep_id, spec
        self._parent = conductor.components.runs.load(sweep_id)
        self._trials: list[Trial] = []
        self._live: dict[str, int] = {}  # run id -> number of children that have not ended
        self._reports = MetricReports(conductor.components, spec)
        self._early_stopping = (
            EarlyStopping(spec.policy, spec.goal, self._reports.histories) if spec.policy is not None else None
        )
        # True for each recent child that failed
        self._recent: deque[bool] = deque(maxlen=max(1, spec.most_failures_in_a_row))
        self._exhausted = False
        self._end: End | None = None  # set when the sweep stops before all children have run
        self._warned_about_metric = self._warned_about_outputs = False
        self._canceled_children: set[str] = set()
        self._sampler = create_sampler(spec.sampling, spec.max_total_runs, spec.known, spec.sign, len(spec.resumed))
        folder = conductor.components.folder(sweep_id)
        self._clock = SweepClock(folder, self._parent.created_at)
        self._log = SweepLog(sweep_id, folder)

    @property
    def watches_reports(self) -> bool:
        return bool(self._live)

    def recover(self) -> None:
        """Restore the state after a restart. A child that was recorded but not submitted is submitted now."""
        self._trials = self._store.trials(self.sweep_id)
        if not self._trials:
            self._log.begin(self.spec)
        ended_at = self._conductor.components.runs.child_end_times(self.sweep_id)
        for trial in sorted(filter(_has_ended, self._trials), key=lambda trial: ended_at.get(trial.run_id) or 0.0):
            self._recent.append(trial.state == RunState.FAILED.value)
        for trial in self._trials:
            if trial.reports and (self.spec.policy is not None or self.spec.sampling.population is not None):
                history = self._reports.read(trial)
                if not _has_ended(trial):
                    history.truncate(trial.reports)  # later reports have not been judged yet: the next round does
            self._sampler.restore(trial.number, trial.parameters)
            if _has_ended(trial):
                self._tell_sampler(trial)
            else:
                self._live[trial.run_id] = trial.number
        for run_id, number in list(self._live.items()):
            try:
                state = self._conductor.components.runs.load(run_id).life.state
                if state.is_terminal:
                    self._record_end(run_id)
                elif self._trials[number].stopped and state is not RunState.CANCEL_REQUESTED:
                    self._conductor.post(run_id, on.CancelRequested(self._trials[number].stopped))
            except RunNotFound:
                self._submit(self._trials[number])

    def advance(self, ended: set[str], running: Container[str] | None = None) -> bool:
        """Perform one step; True when the sweep has finished.

        Args:
            ended: Children that have ended since the last step.
            running: Children whose scripts are running, if it is time to read their reports.
        """
        self._parent = self._conductor.components.runs.load(self.sweep_id)
        for run_id in ended & set(self._live):
            self._record_end(run_id)
        if self._parent.life.state in _ENDING:
            self._end = self._end or self._parent.life.end or End(EndReason.CANCELED, "canceled")
        elif self._end is None:
            self._check_limits()
        if self._end is None:
            if running is not None:
                self._judge_reports(running)
            self._propose()
        else:
            self._end_children(self._end.message)
        if self._live:
            self._report_activity()
            return False
        if self._end is None and not self._all_proposed:
            return False
        self._conclude()
        return True

    def running(self) -> list[str]:
        """Children whose scripts are running, after a restart."""
        begun = self._conductor.components.runs.child_states(self.sweep_id)
        return [run_id for run_id in self._live if begun.get(run_id, ("",))[0] == RunState.RUNNING.value]

    def abort(self) -> None:
        self._end = End(EndReason.LAUNCH_FAILED, "the sweep could not continue")
        self._end_children("the sweep could not continue")

    @property
    def may_propose(self) -> bool:
        number = len(self._trials)
        has_room = len(self._live) < self.spec.max_concurrent_runs and not self._all_proposed
        return has_room and self._end is None and (number < len(self.spec.resumed) or self._sampler.ready(number))

    # children

    def _propose(self) -> None:
        for _ in range(_BATCH):
            if not self.may_propose:
                return
            number = len(self._trials)
            if number < len(self.spec.resumed):
                resumed = self.spec.resumed[number]
                parameters, resumes = dict(resumed.parameters), resumed.run_id
                self._sampler.restore(number, parameters)
            else:
                proposed = self._sampler.ask(number)
                if proposed is None:
                    self._exhausted = True
                    return
                source = self._sampler.parent(number)
                parameters, resumes = proposed, "" if source is None else self._trials[source].run_id
            if resumes and not self._conductor.components.artifacts.has_files_below(resumes, "outputs"):
                self._warn_about_missing_outputs(number, resumes)
                resumes = ""
            policy = self.spec.policy
            bracket = number % policy.brackets if policy is not None and policy.brackets > 1 else 0
            trial = Trial(number, f"{self.sweep_id}_{number}", parameters, resumes=resumes, bracket=bracket)
            self._store.add_trial(self.sweep_id, trial)
            self._trials.append(trial)
            self._submit(trial)

    def _submit(self, trial: Trial) -> None:
        request = child_request(self.spec, self._parent, trial)
        self._live[trial.run_id] = trial.number
        self._log.proposed(trial)
        submit(self._conductor, request, is_checked=True)

    def _record_end(self, run_id: str) -> None:
        number = self._live.pop(run_id)
        record = self._conductor.components.runs.load(run_id)
        history = self._reports.read(self._trials[number])
        trial = replace(
            self._trials[number],
            state=record.life.state.value,
            best=history.best,
            reports=len(history),
            # a child that completed before the cancellation arrived was not stopped early
            stopped=self._trials[number].stopped if record.life.state is RunState.CANCELED else "",
        )
        self._save(trial)
        self._tell_sampler(trial)
        self._recent.append(record.life.state is RunState.FAILED)
        self._log.ended(trial, record)
        if record.life.state is RunState.COMPLETED and not history:
            self._warn_about_missing_metric(record)

    def _warn_about_missing_metric(self, record: RunRecord) -> None:
        """After the first child, not the last: a sweep without its metric wastes hours."""
        if self._warned_about_metric or any(trial.reports for trial in self._trials):
            return
        self._warned_about_metric = True
        with self._conductor.components.database.read() as connection:
            names = [series.name for series in all_series(connection, record.run_id)]
        logged = sorted(name for name in names if not name.startswith("system/"))
        metric = self.spec.primary_metric
        message = f"{record.run_id} ended without logging the primary metric {metric!r}"
        if metric in logged:
            message += " as numbers: it is a row, table or image; use log() for values that children are compared by"
        else:
            message += f"; it logged {', '.join(map(repr, logged)) or 'no metrics'}"
        self._log.warn(message)
        self._conductor.post(self.sweep_id, on.DetailsChanged(), warnings=(RunWarning(message),))

    def _warn_about_missing_outputs(self, number: int, source: str) -> None:
        message = (
            f"{child_label(self.sweep_id, source)} left no outputs to resume from; child {number} starts from scratch"
        )
        self._log.warn(message)
        if not self._warned_about_outputs:  # only once for a script that writes no checkpoints
            self._warned_about_outputs = True
            self._conductor.post(self.sweep_id, on.DetailsChanged(), warnings=(RunWarning(message),))

    def _save(self, trial: Trial) -> None:
        self._trials[trial.number] = trial
        self._store.save_trials(self.sweep_id, [trial])

    # reports

    def _judge_reports(self, running: Container[str]) -> None:
        """Read and judge the reports of running children. Also without a policy: users watch the values live."""
        watched = [self._trials[number] for run_id, number in self._live.items() if run_id in running]
        watched = [trial for trial in watched if not trial.stopped]
        new = {trial.number: self._reports.read_new(trial) for trial in watched}  # read all before judging any
        if self._early_stopping is not None:
            self._early_stopping.update()
        for trial in watched:
            stopped = self._early_stopping.reason_to_stop(trial, new[trial.number]) if self._early_stopping else None
            if not new[trial.number] and stopped is None:
                continue
            history = self._reports.histories[trial.number]
            trial = replace(trial, reports=len(history), best=history.best, stopped=stopped or trial.stopped)
            self._save(trial)  # before the cancellation: if the yard is killed in between, recover() cancels it again
            if stopped:
                self._log.stopped(trial)
                self._conductor.post(trial.run_id, on.CancelRequested(stopped))

    def _tell_sampler(self, trial: Trial) -> None:
        value = self._score(trial)
        if self.spec.sampling.population is not None:  # the next generation resumes from the final model
            last = self._reports.last(trial)
            value = None if last is None else self.spec.sign * last
        self._sampler.tell(trial.number, value, trial.state == RunState.COMPLETED.value)

    def _score(self, trial: Trial) -> float | None:
        return None if trial.best is None else self.spec.sign * trial.best

    # end of the sweep

    @property
    def _all_proposed(self) -> bool:
        return self._exhausted or len(self._trials) >= self.spec.max_total_runs

    def _check_limits(self) -> None:
        minutes = self.spec.max_duration_minutes
        if self._clock.elapsed_s() > minutes * 60:
            self._end = End(EndReason.TIMED_OUT, f"ran longer than max_duration_minutes={minutes}")
        elif len(self._recent) == self._recent.maxlen and all(self._recent) and (self._live or not self._all_proposed):
            self._end = self._failed(f"{len(self._recent)} children in a row failed")
        # persisted: after a restart the sweep would otherwise continue without the canceled children
        if self._end is not None:
            self._conductor.post(self.sweep_id, on.MarkedFailed(self._end))

    def _failed(self, problem: str) -> End:
        """A failure that includes the last failed child's own error."""
        last = next(trial for trial in reversed(self._trials) if trial.state == RunState.FAILED.value)
        record = self._conductor.components.runs.load(last.run_id)
        reason = record.life.end.message if record.life.end else "unknown reason"
        traceback = record.life.end.traceback if record.life.end else ""
        return End(EndReason.SCRIPT_FAILED, f"{problem}; the last one, {last.run_id}: {reason}", traceback=traceback)

    def _result(self) -> End:
        """The end of a sweep whose children have all run. Without a single result it has failed."""
        failed = [trial for trial in self._trials if trial.state == RunState.FAILED.value]
        successful = [trial for trial in self._trials if trial.state == RunState.COMPLETED.value or trial.stopped]
        if not failed or successful:
            return End(EndReason.SUCCEEDED)
        return self._failed(f"{len(failed)} of {len(self._trials)} children failed and none completed")

    def _end_children(self, reason: str) -> None:
        # only once: each cancellation contacts the agent again
        for run_id in set(self._live) - self._canceled_children:
            self._canceled_children.add(run_id)
            try:
                record = self._conductor.post(run_id, on.CancelRequested(f"its sweep ended: {reason}"))
            except RunNotFound:  # recorded but never submitted: no event will report its end
                number = self._live.pop(run_id)
                self._save(replace(self._trials[number], state=RunState.CANCELED.value))
                continue
            if record.life.state.is_terminal:  # it ended earlier, and its event is not repeated
                self._record_end(run_id)

    def _conclude(self) -> None:
        # after a restart this may already have been posted; posting it again changes nothing
        end = self._end or self._result()
        self._log.concluded(self._trials, self.best(), end)
        self._conductor.post(self.sweep_id, on.ChildrenEnded(end))

    def best(self) -> Trial | None:
        scored = [(self._score(trial), trial) for trial in self._trials if trial.best is not None]
        return max(scored, key=lambda pair: pair[0] or 0.0)[1] if scored else None

    def _report_activity(self) -> None:
        done = len(self._trials) - len(self._live)
        best = self.best()
        best_text = f"; best {self.spec.primary_metric} {best.best:.6g} (child {best.number})" if best else ""
        verb = "ending" if self._end else "running"
        total = len(self._trials) if self._exhausted else self.spec.max_total_runs
        stage = self._sampler.stage(len(self._trials) - 1)
        text = f"{stage}{': ' if stage else ''}{verb} {len(self._live)} children, {done} of {total} done{best_text}"
        if self._conductor.activities.get(self.sweep_id)[0] != text:
            self._conductor.report(self.sweep_id, text)


def _has_ended(trial: Trial) -> bool:
    return trial.state != _WAITING and RunState(trial.state).is_terminal
