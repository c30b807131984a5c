"""A name of a holder says which process it is; whoever is certainly gone is taken over at once."""

import os
import socket
import subprocess
import sys
import time

import pytest

from moothall.runtime.holder import is_gone, is_near, name_of_this_process
from tests.runtime.world import HERE

SOON = 20.0
BEGAN_EARLIER = f"{socket.gethostname()}:{os.getpid()}:word+1{HERE}"


def name_of(process: int) -> str:
    return f"{socket.gethostname()}:{process}:word{HERE}"


def test_this_process_is_near_and_not_gone() -> None:
    assert is_near(name_of_this_process())
    assert not is_gone(name_of_this_process())


def test_a_process_that_has_the_number_of_a_holder_and_began_later_is_not_the_holder() -> None:
    assert is_near(BEGAN_EARLIER)
    assert is_gone(BEGAN_EARLIER)


def test_a_name_that_does_not_say_when_its_process_began_is_known_by_its_number() -> None:
    assert not is_gone(name_of(os.getpid()))


def test_a_process_that_was_killed_is_gone_before_its_parent_has_heard_of_it() -> None:
    killed = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert not is_gone(name_of(killed.pid))
        killed.kill()
        end = time.monotonic() + SOON
        while not is_gone(name_of(killed.pid)) and time.monotonic() < end:
            time.sleep(0.001)  # the signal is on its way
        assert is_gone(name_of(killed.pid))
    finally:
        killed.communicate()


@pytest.mark.parametrize("owner", ["", "elsewhere", "elsewhere:1:far", f"{socket.gethostname()}:word:far{HERE}"])
def test_of_others_only_time_can_tell(owner: str) -> None:
    assert not is_gone(owner)
