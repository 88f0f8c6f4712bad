"""`python -m local`: the tool chain and the local cluster."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (whoever runs another Python than .venv's gets a clear line)
    sys.exit(f"Python {sys.version.split()[0]} is too old: install Python 3.11 or newer and make .venv again")

from local.cli import main

main()
