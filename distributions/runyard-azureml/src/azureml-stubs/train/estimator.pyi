from runyard.sdk.training.distributed import Gloo as Gloo
from runyard.sdk.training.distributed import Mpi as Mpi
from runyard.sdk.training.distributed import Nccl as Nccl
from runyard.sdk.training.distributed import ParameterServer as ParameterServer
from runyard.sdk.training.estimator import Estimator as Estimator
