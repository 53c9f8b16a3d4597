"""`mlflow models serve`, one worker, in the present environment."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import mlflow.pyfunc


class Perceptron(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            context.artifacts["model"], options, providers=["CPUExecutionProvider"]
        )

    def predict(self, context, model_input, params=None):
        import numpy

        return self.session.run(None, {"x": numpy.asarray(model_input, dtype=numpy.float32)})[0]


if __name__ == "__main__":
    folder, bin_folder = tempfile.mkdtemp(dir="."), Path(sys.executable).parent
    mlflow.pyfunc.save_model(
        f"{folder}/model", python_model=Perceptron(), artifacts={"model": sys.argv[1]}, pip_requirements=[]
    )
    command = [str(bin_folder / "mlflow"), "models", "serve", "-m", f"{folder}/model"]
    command += ["-p", sys.argv[2], "--env-manager", "local", "--workers", "1"]
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    sys.exit(subprocess.run(command, env=environment).returncode)
