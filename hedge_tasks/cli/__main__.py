"""`python -m hedge_tasks.cli`."""

import sys

from hedge_tasks.cli import main

sys.exit(main())
