"""Entry point of `python -m runyard`."""

import sys

from runyard.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
