"""`python -m runyard` is the command line."""

import sys

from runyard.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
