"""`python -m moothall` is `moot`."""

import sys

from moothall.cli.main import main

sys.exit(main())
