"""Requests for an ONNX model that are there together go through it together."""

from __future__ import annotations

import asyncio
from typing import Any, Optional

from runyard.scoring import counters, onnx_model
from runyard.scoring.dispatcher import Desk, Job
from runyard.scoring.entry_script import Unusable
from runyard.scoring.executor import Turns
from runyard.scoring.onnx_model import Misfit, OnnxModel
from runyard.scoring.responses import Answer, problem
from runyard.spec.service import Batching


class Batches:
    def __init__(
        self, turns: Turns, desk: Desk, loop: asyncio.AbstractEventLoop, model: OnnxModel, how: Batching
    ) -> None:
        if not model.is_batchable:
            raise Unusable("batching needs a model whose inputs and outputs have a first dimension of any size")
        self._turns, self._desk, self._loop, self._model, self._how = turns, desk, loop, model, how
        self._name = model.inputs[0].name
        self._waiting: list[tuple[Job, dict[str, Any], int]] = []
        self._rows = 0
        self._due: Optional[asyncio.Handle] = None

    def __call__(self, job: Job) -> None:
        request_id = job.connection.request_id
        try:
            feed = self._model.arrays(job.body)
            rows = len(feed[self._name])
            if any(len(array) != rows for array in feed.values()):
                raise Misfit("the inputs must have the same number of rows")
        except Misfit as why:
            self._desk.scored(job, problem(400, str(why), request_id))
            return
        if self._rows and self._rows + rows > self._how.largest:
            self._go()
        self._waiting.append((job, feed, rows))
        self._rows += rows
        if self._rows >= self._how.largest:
            self._go()
        elif self._due is None:
            wait_s = self._how.wait_ms / 1e3
            # by the next turn of the loop everything that has arrived by now has been read
            self._due = self._loop.call_later(wait_s, self._go) if wait_s else self._loop.call_soon(self._go)

    def _go(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        batch, self._waiting, self._rows = self._waiting, [], 0
        if not batch:
            return
        numbers = self._desk.counter.numbers
        numbers[counters.BATCHES] += 1
        numbers[counters.BATCHED] += sum(rows for _, _, rows in batch)
        self._turns.do(tuple(job for job, _, _ in batch), lambda: self._scored(batch))

    def _scored(self, batch: list[tuple[Job, dict[str, Any], int]]) -> list[tuple[Job, Answer]]:
        if len(batch) == 1:
            return [(job, self._alone(job, feed)) for job, feed, _ in batch]
        try:
            results = self._model.run(self._model.joined([feed for _, feed, _ in batch]))
        except Exception:  # noqa: BLE001  one request that the model cannot bear is not the fault of the others
            return [(job, self._alone(job, feed)) for job, feed, _ in batch]
        answers, begin = [], 0
        for job, _, rows in batch:
            part = [array[begin : begin + rows] for array in results]
            answers.append((job, Answer(200, self._model.encoded(part))))
            begin += rows
        return answers

    def _alone(self, job: Job, feed: dict[str, Any]) -> Answer:
        try:
            return Answer(200, self._model.encoded(self._model.run(feed)))
        except Exception:  # noqa: BLE001  the edge: ONNX Runtime's own errors have no common class
            return onnx_model.failed(job.connection.request_id)
