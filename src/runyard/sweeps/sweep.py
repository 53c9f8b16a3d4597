"""One sweep on its way: children proposed, watched, ended early, learnt from. All it knows can be read again."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from dataclasses import replace

from runyard import clock
from runyard.errors import RunNotFound
from runyard.lifecycle import events as on
from runyard.lifecycle.state import TERMINAL, End, EndReason, RunState
from runyard.lifecycle.warning import RunWarning
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.submit import submit
from runyard.spec.sweep import Trial, called
from runyard.store.runs import RunRecord
from runyard.store.sweeps import SweepStore
from runyard.sweeps.child_runs import child_request
from runyard.sweeps.early_stopping import Judge
from runyard.sweeps.metric_reports import Reports
from runyard.sweeps.sampling import sampler_of
from runyard.sweeps.sweep_log import Diary
from runyard.tracking.series import all_series

_WAITING = "Waiting"
_AT_A_TIME = 20  # are proposed before anybody else has a turn, and a cancel is heard
_ENDING = {RunState.CANCEL_REQUESTED, RunState.FINALIZING, *TERMINAL}  # nothing more is proposed


class Sweep:
    def __init__(self, conductor: Conductor, store: SweepStore, sweep_id: str) -> None:
        spec = store.load(sweep_id)
        assert spec is not None
        self._conductor, self._store, self.sweep_id, self.spec = conductor, store, sweep_id, spec
        self._parent = conductor.rooms.runs.load(sweep_id)
        self._trials: list[Trial] = []
        self._live: dict[str, int] = {}  # run id -> number, of children that have not ended
        self._reports = Reports(conductor.rooms, spec)
        self._judge = Judge(spec.policy, spec.goal, self._reports.of) if spec.policy is not None else None
        self._recent: deque[bool] = deque(maxlen=max(1, spec.most_failures_in_a_row))  # whether each failed, lately
        self._exhausted = False
        self._end: End | None = None  # known when the sweep stops before its children are through
        self._said_metric = self._said_outputs = False
        self._told_to_end: set[str] = set()
        self._sampler = sampler_of(spec.sampling, spec.max_total_runs, spec.known, spec.sign, len(spec.resumed))
        self._diary = Diary(sweep_id, conductor.rooms.folder(sweep_id))

    @property
    def watches_reports(self) -> bool:
        return bool(self._live)

    def recover(self) -> None:
        """Where a former yard has left it. A child that was written down and not submitted is submitted now."""
        self._trials = self._store.trials(self.sweep_id)
        if not self._trials:
            self._diary.begin(self.spec)
        ended_at = self._conductor.rooms.runs.ended_below(self.sweep_id)
        for trial in sorted(filter(_is_over, self._trials), key=lambda trial: ended_at.get(trial.run_id) or 0.0):
            self._recent.append(trial.state == RunState.FAILED.value)
        for trial in self._trials:
            if trial.reports and (self.spec.policy is not None or self.spec.sampling.population is not None):
                history = self._reports.read(trial)
                if not _is_over(trial):
                    history.cut(trial.reports)  # what came since was never judged, and the next look judges what is new
            self._sampler.took(trial.number, trial.parameters)
            if _is_over(trial):
                self._learn(trial)
            else:
                self._live[trial.run_id] = trial.number
        for run_id, number in list(self._live.items()):
            try:
                state = self._conductor.rooms.runs.load(run_id).life.state
                if state.is_terminal:
                    self._ended(run_id)
                elif self._trials[number].stopped and state is not RunState.CANCEL_REQUESTED:
                    self._conductor.post(run_id, on.CancelRequested(self._trials[number].stopped))
            except RunNotFound:
                self._submit(self._trials[number])

    def advance(self, ended: set[str], look_at: Container[str] | None = None) -> bool:
        """One step with what is known now; True when nothing is left to do. ``look_at``: whose scripts run, when it is
        time to see what they report."""
        self._parent = self._conductor.rooms.runs.load(self.sweep_id)
        for run_id in ended & set(self._live):
            self._ended(run_id)
        if self._parent.life.state in _ENDING:
            self._end = self._end or self._parent.life.end or End(EndReason.CANCELED, "canceled")
        elif self._end is None:
            self._look_for_an_end()
        if self._end is None:
            if look_at is not None:
                self._look_at_reports(look_at)
            self._propose()
        else:
            self._end_children(self._end.message)
        if self._live:
            self._tell()
            return False
        if self._end is None and not self._is_through:
            return False
        self._conclude()
        return True

    def running(self) -> list[str]:
        """Of a sweep that was taken up again: children whose script runs already."""
        begun = self._conductor.rooms.runs.begun_below(self.sweep_id)
        return [run_id for run_id in self._live if begun.get(run_id, ("",))[0] == RunState.RUNNING.value]

    def give_up(self) -> None:
        self._end = End(EndReason.LAUNCH_FAILED, "the sweep could not go on")
        self._end_children("its sweep could not go on")

    @property
    def may_propose(self) -> bool:
        number = len(self._trials)
        has_room = len(self._live) < self.spec.max_concurrent_runs and not self._is_through
        return has_room and self._end is None and (number < len(self.spec.resumed) or self._sampler.ready(number))

    # children

    def _propose(self) -> None:
        for _ in range(_AT_A_TIME):
            if not self.may_propose:
                return
            number = len(self._trials)
            if number < len(self.spec.resumed):
                resumed = self.spec.resumed[number]
                parameters, resumes = dict(resumed.parameters), resumed.run_id
                self._sampler.took(number, parameters)
            else:
                proposed = self._sampler.propose(number)
                if proposed is None:
                    self._exhausted = True
                    return
                former = self._sampler.goes_on_from(number)
                parameters, resumes = proposed, "" if former is None else self._trials[former].run_id
            if resumes and not self._conductor.rooms.artifacts.has_below(resumes, "outputs"):
                self._say_that_nothing_was_left(number, resumes)
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
        self._diary.proposed(trial)
        submit(self._conductor, request, is_checked=True)

    def _ended(self, run_id: str) -> None:
        number = self._live.pop(run_id)
        record = self._conductor.rooms.runs.load(run_id)
        history = self._reports.read(self._trials[number])
        trial = replace(
            self._trials[number],
            state=record.life.state.value,
            best=history.best,
            reports=len(history),
            # one that was through before it was told to end was not ended early
            stopped=self._trials[number].stopped if record.life.state is RunState.CANCELED else "",
        )
        self._keep(trial)
        self._learn(trial)
        self._recent.append(record.life.state is RunState.FAILED)
        self._diary.ended(trial, record)
        if record.life.state is RunState.COMPLETED and not history:
            self._say_that_nothing_was_reported(record)

    def _say_that_nothing_was_reported(self, record: RunRecord) -> None:
        """After the first child, not after the last: a sweep without its metric is hours of work for nothing."""
        if self._said_metric or any(trial.reports for trial in self._trials):
            return
        self._said_metric = True
        with self._conductor.rooms.database.read() as connection:
            names = [series.name for series in all_series(connection, record.run_id)]
        logged = sorted(name for name in names if not name.startswith("system/"))
        metric = self.spec.primary_metric
        said = f"{record.run_id} ended without logging the primary metric {metric!r}"
        if metric in logged:
            said += " as numbers: it is a row, a table or an image there, and log() is what children are compared by"
        else:
            said += f"; it logged {', '.join(map(repr, logged)) or 'no metric at all'}"
        self._diary.warn(said)
        self._conductor.post(self.sweep_id, on.Noted(), warnings=(RunWarning(said),))

    def _say_that_nothing_was_left(self, number: int, former: str) -> None:
        said = f"{called(self.sweep_id, former)} left no outputs to go on from, and child {number} begins anew"
        self._diary.warn(said)
        if not self._said_outputs:  # once, of a script that keeps no checkpoints
            self._said_outputs = True
            self._conductor.post(self.sweep_id, on.Noted(), warnings=(RunWarning(said),))

    def _keep(self, trial: Trial) -> None:
        self._trials[trial.number] = trial
        self._store.save_trials(self.sweep_id, [trial])

    # what they report

    def _look_at_reports(self, running: Container[str]) -> None:
        """Also where no policy waits for them: people want to see how the children do before they have ended."""
        watched = [self._trials[number] for run_id, number in self._live.items() if run_id in running]
        watched = [trial for trial in watched if not trial.stopped]
        new = {trial.number: self._reports.read_new(trial) for trial in watched}  # all of them before any is judged
        if self._judge is not None:
            self._judge.look()
        for trial in watched:
            stopped = self._judge.verdict(trial, new[trial.number]) if self._judge is not None else None
            if not new[trial.number] and stopped is None:
                continue
            history = self._reports.of[trial.number]
            trial = replace(trial, reports=len(history), best=history.best, stopped=stopped or trial.stopped)
            self._keep(trial)  # before it is told: a yard that is killed between the two tells it again
            if stopped:
                self._diary.stopped(trial)
                self._conductor.post(trial.run_id, on.CancelRequested(stopped))

    def _learn(self, trial: Trial) -> None:
        value = self._score(trial)
        if self.spec.sampling.population is not None:  # what is handed on is the model as it was at the end
            history = self._reports.of.get(trial.number)
            value = None if history is None or history.last is None else self.spec.sign * history.last
        self._sampler.learn(trial.number, value, trial.state == RunState.COMPLETED.value)

    def _score(self, trial: Trial) -> float | None:
        return None if trial.best is None else self.spec.sign * trial.best

    # its end

    @property
    def _is_through(self) -> bool:
        return self._exhausted or len(self._trials) >= self.spec.max_total_runs

    def _look_for_an_end(self) -> None:
        minutes = self.spec.max_duration_minutes
        if clock.now() - self._parent.created_at > minutes * 60:
            self._end = End(EndReason.TIMED_OUT, f"ran longer than max_duration_minutes={minutes}")
        elif len(self._recent) == self._recent.maxlen and all(self._recent) and (self._live or not self._is_through):
            self._end = self._failed(f"{len(self._recent)} children in a row failed")
        if self._end is not None:  # written down: the next yard would go on, without the children that are ended now
            self._conductor.post(self.sweep_id, on.MarkedFailed(self._end))

    def _failed(self, what: str) -> End:
        """With the last child's own error: nobody should have to look for it."""
        last = next(trial for trial in reversed(self._trials) if trial.state == RunState.FAILED.value)
        record = self._conductor.rooms.runs.load(last.run_id)
        why = record.life.end.message if record.life.end else "no reason is known"
        traceback = record.life.end.traceback if record.life.end else ""
        return End(EndReason.SCRIPT_FAILED, f"{what}; the last one, {last.run_id}: {why}", traceback=traceback)

    def _own_end(self) -> End:
        """Of a sweep that came through. One that nothing came of must not look like a success."""
        failed = [trial for trial in self._trials if trial.state == RunState.FAILED.value]
        brought = [trial for trial in self._trials if trial.state == RunState.COMPLETED.value or trial.stopped]
        if not failed or brought:
            return End(EndReason.SUCCEEDED)
        return self._failed(f"{len(failed)} of {len(self._trials)} children failed and none completed")

    def _end_children(self, why: str) -> None:
        for run_id in set(self._live) - self._told_to_end:  # once: each time its agent would be asked again
            self._told_to_end.add(run_id)
            try:
                record = self._conductor.post(run_id, on.CancelRequested(f"its sweep ended: {why}"))
            except RunNotFound:  # written down and never taken in: nobody would ever tell of its end
                number = self._live.pop(run_id)
                self._keep(replace(self._trials[number], state=RunState.CANCELED.value))
                continue
            if record.life.state.is_terminal:  # it had ended before anybody listened, and is not told of again
                self._ended(run_id)

    def _conclude(self) -> None:
        # after a restart the last word may have been said and its children ended: posting it again changes nothing
        end = self._end or self._own_end()
        self._diary.concluded(self._trials, self.best(), end)
        self._conductor.post(self.sweep_id, on.ChildrenEnded(end))

    def best(self) -> Trial | None:
        scored = [(self._score(trial), trial) for trial in self._trials if trial.best is not None]
        return max(scored, key=lambda pair: pair[0] or 0.0)[1] if scored else None

    def _tell(self) -> None:
        over = len(self._trials) - len(self._live)
        best = self.best()
        found = f"; best {self.spec.primary_metric} {best.best:.6g} (child {best.number})" if best else ""
        doing = "ending" if self._end else "running"
        total = len(self._trials) if self._exhausted else self.spec.max_total_runs
        stage = self._sampler.stage(len(self._trials) - 1)
        text = f"{stage}{': ' if stage else ''}{doing} {len(self._live)} children, {over} of {total} done{found}"
        if self._conductor.activities.get(self.sweep_id)[0] != text:
            self._conductor.say(self.sweep_id, text)


def _is_over(trial: Trial) -> bool:
    return trial.state != _WAITING and RunState(trial.state).is_terminal
