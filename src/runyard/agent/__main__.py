"""``python -m runyard.agent order.json``: start an agent without a forkserver."""

from __future__ import annotations

import sys

from runyard.agent.main import main

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m runyard.agent order.json")
    sys.exit(main(sys.argv[1]))
