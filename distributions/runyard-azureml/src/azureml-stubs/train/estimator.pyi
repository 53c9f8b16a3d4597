from runyard.sdk.distributed import Gloo as Gloo
from runyard.sdk.distributed import Mpi as Mpi
from runyard.sdk.distributed import Nccl as Nccl
from runyard.sdk.distributed import ParameterServer as ParameterServer
from runyard.sdk.estimator import Estimator as Estimator
