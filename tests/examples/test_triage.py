"""The tests that stand beside the example, run with ours."""

import sys
from importlib import import_module

from tests.cli.process import EXAMPLES

sys.path.insert(0, str(EXAMPLES))
globals().update({name: test for name, test in vars(import_module("test_triage")).items() if name.startswith("test_")})
