from runyard.sdk.chainer import Chainer as Chainer
from runyard.sdk.distributed import Gloo as Gloo
from runyard.sdk.distributed import Mpi as Mpi
from runyard.sdk.distributed import Nccl as Nccl
from runyard.sdk.distributed import ParameterServer as ParameterServer
from runyard.sdk.frameworks import PyTorch as PyTorch
from runyard.sdk.frameworks import TensorFlow as TensorFlow
