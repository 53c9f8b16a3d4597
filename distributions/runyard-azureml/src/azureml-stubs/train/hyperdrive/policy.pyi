from runyard.sdk.hyperdrive.policy import BanditPolicy as BanditPolicy
from runyard.sdk.hyperdrive.policy import EarlyTerminationPolicy as EarlyTerminationPolicy
from runyard.sdk.hyperdrive.policy import MedianStoppingPolicy as MedianStoppingPolicy
from runyard.sdk.hyperdrive.policy import NoTerminationPolicy as NoTerminationPolicy
from runyard.sdk.hyperdrive.policy import TruncationSelectionPolicy as TruncationSelectionPolicy
