"""All machines that the checker is tried on: what is wrong in one way each, what is right, what was counted by hand.

What is wrong with a machine follows from what the documentation says about rows, bounds and events. At which of the
states of a defect it is reported (the place of a finding) is as the checker has it.
"""

from __future__ import annotations

from tests.kernel.checked.contested import CONTESTED
from tests.kernel.checked.counted import COUNTED, GRANDPARENT, KID, PARENT
from tests.kernel.checked.cycles import CYCLES
from tests.kernel.checked.endless import ENDLESS
from tests.kernel.checked.shadowed import SHADOWED
from tests.kernel.checked.sound import SOUND
from tests.kernel.checked.unanswered import UNANSWERED
from tests.kernel.checked.unreachable import UNREACHABLE

BROKEN = [*UNREACHABLE, *ENDLESS, *SHADOWED, *UNANSWERED, *CYCLES, *CONTESTED]

__all__ = ["BROKEN", "COUNTED", "GRANDPARENT", "KID", "PARENT", "SOUND"]
