"""A minimal server: uvicorn with uvloop and httptools, orjson, ONNX Runtime; no keys, logs or metrics."""

import sys

import numpy
import onnxruntime
import orjson
import uvicorn

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message["body"]
        if not message.get("more_body"):
            break
    rows = numpy.array(orjson.loads(body)["data"], dtype=numpy.float32)
    out = orjson.dumps(session.run(None, {"x": rows})[0], option=orjson.OPT_SERIALIZE_NUMPY)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(out)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": out})


uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False, loop="uvloop", http="httptools", ws="none")
