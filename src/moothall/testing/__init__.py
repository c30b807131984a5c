"""For the tests of those who write machines: no network, no waiting, no file.

    from moothall.testing import Trial, check, crash_everywhere

    def test_an_offer_that_nobody_approves_is_dropped():
        trial = Trial(OFFER, agents={"clerk": ["Dear Ada"], "send": "sent"})
        trial.run(Offer("Ada"))
        trial.advance(days(3))
        trial.assert_path("writing", "approving", "dropped")

A `Trial` runs a machine as users do, on a store in memory, with fakes and with a clock that the test moves. A `Walk`
steps a machine by hand and performs nothing. `check` is what `moot check` finds. `crash_everywhere` kills the run
before and after each of its commits, goes on, and compares.
"""

from moothall.stores.memory import MemoryStore
from moothall.testing.checks import check
from moothall.testing.clock import TestClock
from moothall.testing.crashes import crash_everywhere
from moothall.testing.fakes import Fake
from moothall.testing.trial import Trial
from moothall.testing.walk import Walk

__all__ = ["Fake", "MemoryStore", "TestClock", "Trial", "Walk", "check", "crash_everywhere"]
