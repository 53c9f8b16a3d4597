"""Ray Serve, one replica."""

import os
import sys
import time

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import numpy
import onnxruntime
import ray
from ray import serve
from starlette.requests import Request


@serve.deployment(num_replicas=1, max_ongoing_requests=64, ray_actor_options={"num_cpus": 1})
class Perceptron:
    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    async def __call__(self, request: Request):
        rows = numpy.array((await request.json())["data"], dtype=numpy.float32)
        return self.session.run(None, {"x": rows})[0].tolist()


ray.init(num_cpus=4, log_to_driver=False, include_dashboard=False)
serve.start(http_options={"port": int(sys.argv[2]), "host": "127.0.0.1"})
serve.run(Perceptron.bind(sys.argv[1]), route_prefix="/")
while True:
    time.sleep(3600)
