"""Batching: scores concurrent requests for an ONNX model in one call."""

from __future__ import annotations

import asyncio
from typing import Any, Optional

from runyard.scoring import counters, onnx_model
from runyard.scoring.dispatcher import Dispatcher, Job
from runyard.scoring.entry_script import CannotServe
from runyard.scoring.executor import Executor
from runyard.scoring.onnx_model import InputMismatch, OnnxModel
from runyard.scoring.responses import Response, problem
from runyard.spec.service import Batching


class Batcher:
    def __init__(
        self,
        executor: Executor,
        dispatcher: Dispatcher,
        loop: asyncio.AbstractEventLoop,
        model: OnnxModel,
        settings: Batching,
    ) -> None:
        if not model.is_batchable:
            raise CannotServe("batching requires a model with a dynamic first dimension in all inputs and outputs")
        self._executor, self._dispatcher, self._loop, self._model, self._settings = (
            executor,
            dispatcher,
            loop,
            model,
            settings,
        )
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
                raise InputMismatch("the inputs must have the same number of rows")
        except InputMismatch as error:
            self._dispatcher.complete(job, problem(400, str(error), request_id))
            return
        if self._rows and self._rows + rows > self._settings.largest:
            self._flush()
        self._waiting.append((job, feed, rows))
        self._rows += rows
        if self._rows >= self._settings.largest:
            self._flush()
        elif self._due is None:
            wait_s = self._settings.wait_ms / 1e3
            # call_soon: requests that have already arrived are read before the next iteration of the loop
            self._due = self._loop.call_later(wait_s, self._flush) if wait_s else self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        batch, self._waiting, self._rows = self._waiting, [], 0
        if not batch:
            return
        numbers = self._dispatcher.counter.numbers
        numbers[counters.BATCHES] += 1
        numbers[counters.BATCHED] += sum(rows for _, _, rows in batch)
        self._executor.submit(tuple(job for job, _, _ in batch), lambda: self._score_batch(batch))

    def _score_batch(self, batch: list[tuple[Job, dict[str, Any], int]]) -> list[tuple[Job, Response]]:
        if len(batch) == 1:
            return [(job, self._score_single(job, feed)) for job, feed, _ in batch]
        try:
            results = self._model.run(self._model.joined([feed for _, feed, _ in batch]))
        except Exception:  # noqa: BLE001  a request that the model cannot process must not fail the others
            return [(job, self._score_single(job, feed)) for job, feed, _ in batch]
        responses, begin = [], 0
        for job, _, rows in batch:
            part = [array[begin : begin + rows] for array in results]
            responses.append((job, Response(200, self._model.encoded(part))))
            begin += rows
        return responses

    def _score_single(self, job: Job, feed: dict[str, Any]) -> Response:
        try:
            return Response(200, self._model.encoded(self._model.run(feed)))
        except Exception:  # noqa: BLE001  the edge: ONNX Runtime's own errors have no common class
            return onnx_model.failed(job.connection.request_id)
