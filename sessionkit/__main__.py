"""`python -m sessionkit`: the command line."""

import sys

from sessionkit.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
