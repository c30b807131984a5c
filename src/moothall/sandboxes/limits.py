"""How much one command may take. Reaching a limit ends the command or refuses it more; it never harms the machine."""

from __future__ import annotations

import os
import resource
from functools import lru_cache

from moothall.kernel.frozen import Frozen

MEGABYTE = 2**20
GIGABYTE = 2**30


@lru_cache(maxsize=1)
def default_memory() -> int:
    """Four gigabytes, or half of what a small machine has."""
    return min(4 * GIGABYTE, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)


class Limits(Frozen):
    """What a command may take: seconds, bytes, and processes.

    Of each stream the first `kept` bytes reach the caller; after `output` bytes on both the command is ended. Two
    streams of a command of which every byte becomes six characters of JSON stay below 16 MB. `disk` is by how much the
    free space of the workspace's disk may shrink while the command runs. Without a memory cgroup `memory` holds for
    each process.
    """

    wall: float = 120.0
    cpu: int = 600
    memory: int = 0
    processes: int = 1024
    kept: int = 5 * MEGABYTE // 4
    output: int = 64 * MEGABYTE
    file: int = 2 * GIGABYTE
    tmp: int = GIGABYTE
    disk: int = 4 * GIGABYTE

    @property
    def memory_bytes(self) -> int:
        """The memory in bytes; 0 stands for what suits this machine."""
        return self.memory or default_memory()


def limit_process(pid: int, limits: Limits, *, counts_memory: bool, counts_processes: bool) -> None:
    """Put a process and all that it will start under limits; what a cgroup counts already is left to it."""
    wanted = {
        resource.RLIMIT_CPU: (limits.cpu, limits.cpu + 2),
        resource.RLIMIT_FSIZE: (limits.file, limits.file),
        resource.RLIMIT_CORE: (1, 1),  # 0 would still start the program that core_pattern names
        resource.RLIMIT_NOFILE: (1024, 65_536),
    }
    if not counts_memory:
        wanted[resource.RLIMIT_AS] = (limits.memory_bytes, limits.memory_bytes)
    if not counts_processes:
        wanted[resource.RLIMIT_NPROC] = (limits.processes, limits.processes)
    for kind, (soft, hard) in wanted.items():
        most = resource.prlimit(pid, kind)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.prlimit(pid, kind, (soft, hard))
