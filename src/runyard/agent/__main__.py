"""``python -m runyard.agent order.json [fd]``: start an agent without a forkserver.

The descriptor is a file with the private variables of the run, from ``runyard.launch.private_variables``.
"""

from __future__ import annotations

import sys

from runyard.agent.main import main
from runyard.launch.private_variables import read_memory_file

if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python -m runyard.agent order.json [fd]")
    sys.exit(main(sys.argv[1], private=read_memory_file(int(sys.argv[2])) if len(sys.argv) == 3 else {}))
