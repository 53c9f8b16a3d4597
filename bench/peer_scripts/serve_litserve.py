"""LitServe, one worker."""

import sys

import litserve
import numpy
import onnxruntime


class Api(litserve.LitAPI):
    def setup(self, device):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])

    def decode_request(self, request):
        return numpy.array(request["data"], dtype=numpy.float32)

    def predict(self, rows):
        return self.session.run(None, {"x": rows})[0]

    def encode_response(self, output):
        return output.tolist()


if __name__ == "__main__":
    server = litserve.LitServer(Api(), accelerator="cpu", workers_per_device=1)
    server.run(port=int(sys.argv[2]), log_level="error", generate_client_file=False)
