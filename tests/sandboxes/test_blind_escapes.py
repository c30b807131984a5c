"""Ways out of the sandbox, written without looking at how it is built.

Every attempt goes through the door that a person has, `moot sandbox -- sh -c COMMAND`, and the same things are held after each:
the folders beside the workspace, far from it and at home are as they were; no listener heard anything; no process that the command
started is left; no secret came out, also not backwards or in hexadecimal; nothing was left that git or the product would read.
An attempt that can tell by itself that it got out says so. None is made where nothing protects, and each is harmless where it succeeds.
"""

# ruff: noqa: E501 - a command of the tables stays on one line

import ctypes
import fcntl
import json
import os
import pty
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

MOOT = Path(sys.executable).with_name("moot")
SHARED_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/etc", "/run", "/usr/local/bin", "/var/spool/cron/crontabs")
PLACEHOLDERS = (".git", "moothall.toml", "HEAD")

# Some attempts would do harm where nothing protects: they are not made where the outside can be seen.
GUARD = "if [ -e @OUT@/secret ] || grep -aqs 600 /proc/@BYSTANDER@/cmdline; then echo ESC''APED; exit; fi"


PRELUDE = """
import ctypes, fcntl, glob, os, re, resource, signal, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def escaped(*words): print("ESC" + "APED", *words, flush=True)
def attempt(action, *arguments):
    try: return action(*arguments)
    except Exception as trouble: print(type(trouble).__name__, trouble, file=sys.stderr)
def call(number, *arguments):
    libc.syscall.restype = ctypes.c_long
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
"""


def python(code: str) -> str:
    """A command that runs this in Python."""
    return f"python3 - <<'END'\n{PRELUDE}{code}\nEND"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way out: what is there before, what is run, and what else is true of it."""

    name: str
    command: str
    setup: str = ""
    then: str = ""
    timeout: int = 15
    killed: bool = False
    tty: bool = False
    leak: bool = False
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trap:
    """What a command leaves in the workspace for the host's own tools to step into."""

    name: str
    command: str
    path: str = "notes.txt"
    folder: str = "."
    pipes: tuple[str, ...] = ()
    """What would hold up the user's own git, too, as it does wherever it comes from."""


def rows(table: tuple[Attempt, ...] | tuple[Trap, ...]) -> list[ParameterSet]:
    """The rows of a table as cases."""
    return [pytest.param(row, id=row.name) for row in table]


READ = (
    Attempt(
        "the root and the folder of every process",
        "for p in /proc/[0-9]*; do cat $p/root@OUT@/secret $p/cwd/../out/secret $p/task/*/cwd/../out/secret; done | rev",
    ),
    Attempt(
        "an inherited folder by /dev/fd",
        "for f in /dev/fd/* /proc/*/fd/* /proc/*/task/*/fd/*; do cat $f/secret; done | rev",
        leak=True,
    ),
    Attempt(
        "an inherited folder by fchdir",
        python("for n in range(3, 300):\n    if attempt(os.fchdir, n) is None: os.system('cat secret | rev')"),
        leak=True,
    ),
    Attempt(
        "an inherited socket is spoken into",
        python("for n in range(3, 300): attempt(os.write, n, b'hello')"),
        leak=True,
    ),
    Attempt(
        "the kernel's memory",
        python(
            "for name in ('/proc/kcore', '/dev/core', '/dev/mem', '/dev/kmem', '/dev/port', '/dev/kmsg', '/proc/kmsg'):\n"
            "    if attempt(lambda: os.read(os.open(name, os.O_RDONLY | os.O_NONBLOCK), 64)): escaped(name)"
        ),
    ),
    Attempt("the kernel's log", python("if call(103, 3, ctypes.create_string_buffer(4096), 4096) > 0: escaped()")),
    Attempt("the tree of devices", "[ -n \"$(ls -A /sys/kernel /sys/fs /sys/class/net/eth0 2>/dev/null)\" ] && echo ESC''APED"),
    Attempt("mapped files of every process", "cat /proc/*/map_files/* 2>/dev/null | grep -a -o 'CANARY-[0-9a-f]*' | rev"),
    Attempt("environments of all tasks", "cat /proc/[0-9]*/environ /proc/[0-9]*/task/*/environ | tr '\\0' '\\n' | rev"),
    Attempt(
        "the memory of the first process",
        python(
            "for line in open('/proc/1/maps'):\n"
            "    low, high = (int(part, 16) for part in line.split()[0].split('-'))\n"
            "    def look():\n"
            "        with open('/proc/1/mem', 'rb') as memory:\n"
            "            memory.seek(low)\n"
            "            for word in re.findall(rb'CANARY-[0-9a-f]+', memory.read(min(high - low, 1 << 24))): print(word[::-1])\n"
            "    attempt(look)"
        ),
    ),
    Attempt(
        "descriptors of the first process",
        python(
            "held = call(434, 1, 0)\n"
            "for n in range(64):\n"
            "    stolen = call(438, held, n, 0)\n"
            "    if stolen >= 0 and os.path.isdir(f'/proc/self/fd/{stolen}'): os.system(f'cat /proc/self/fd/{stolen}/secret | rev')"
        ),
        leak=True,
    ),
    Attempt(
        "a file by its handle",
        python(
            "raw = bytes.fromhex(open('handle').read().strip())\n"
            "got = call(304, os.open('.', os.O_RDONLY), ctypes.create_string_buffer(raw), os.O_RDONLY)\n"
            "if got >= 0: escaped(os.read(got, 99)[::-1])"
        ),
        setup="@HANDLE@",
    ),
    Attempt(
        "upwards from an open folder",
        python(
            "top = os.open('.', os.O_RDONLY)\n"
            "for way in ('../out/secret', 'sub/../../out/secret', './/..//out//secret'):\n"
            "    got = attempt(lambda: os.open(way, os.O_RDONLY, dir_fd=top))\n"
            "    if got: print(os.read(got, 99)[::-1])"
        ),
        setup="mkdir @WS@/sub",
    ),
    Attempt("a folder moved away under its visitor", "mkdir -p a/b; cd a/b; mv @WS@/a /tmp/a; cat ../../out/secret ../../../out/secret | rev"),
    Attempt(
        "a root within the root",
        python("os.mkdir('x'); top = os.open('.', os.O_RDONLY); attempt(os.chroot, 'x'); os.fchdir(top)\nfor _ in range(30): os.chdir('..')\nattempt(os.chroot, '.'); os.system('cat @OUT@/secret | rev')"),
    ),
    Attempt("what lies below the mounts", "for m in @WS@ /tmp /proc/keys /proc /dev /; do umount -l $m; done; cat @OUT@/secret /oldroot@OUT@/secret /newroot@OUT@/secret | rev"),
    Attempt("a memory file that others share", "cat /dev/shm/@MARK@ /tmp/@MARK@ /var/tmp/@MARK@ | rev", setup="for d in /dev/shm /tmp /var/tmp; do echo @CANARY@ > $d/@MARK@; done", keeps=("/dev/shm", "/tmp", "/var/tmp")),
    Attempt("a link to magic links", "ln -s /proc/self/root/../../..@OUT@/secret a; ln -s /proc/1/root@OUT@/secret b; ln -s /proc/thread-self/cwd/../out/secret c; cat a b c | rev"),
    Attempt("keys of the session", python("buffer = ctypes.create_string_buffer(99)\nfor ring in (-1, -2, -3, -4, -5):\n    key = call(250, 10, ring, ctypes.c_char_p(b'user'), ctypes.c_char_p(b'@MARK@'), 0)\n    if key > 0 and call(250, 11, key, buffer, 99) > 0: escaped(buffer.value[::-1])"), setup="@KEY@"),
    Attempt("keys at home", "cat @HOME@/.ssh/id_ed25519 @HOME@/.ssh/* /proc/*/root@HOME@/.ssh/* 2>/dev/null | rev"),
    Attempt("a backup by tar through links", "ln -s @UP@ up; tar chf - up 2>/dev/null | rev; find -L / -xdev -name secret -exec rev {} + 2>/dev/null; find -L @UP@ -name secret -exec rev {} +"),
)  # fmt: skip

WRITE = (
    Attempt("the workspace is renamed and made anew", "cd /; mv @WS@ @UP@/gone; mkdir -p @WS@; ln -s @OUT@ @WS@/d; rm -rf @WS@; ln -s @OUT@ @WS@; echo x > @WS@/pwned"),
    Attempt("upwards from an open folder, written", python("top = os.open('.', os.O_RDONLY)\nfor way in ('../pwned', '../out/pwned'): attempt(lambda: os.open(way, os.O_CREAT | os.O_WRONLY, dir_fd=top))")),
    Attempt("renamed across", python("open('x', 'w').write('x')\nfor to in ('@OUT@/pwned', '../pwned', '@FAR@/pwned'): attempt(os.rename, 'x', to); attempt(os.link, 'x', to)")),
    Attempt("a temporary file for the next command", "for d in /tmp /var/tmp /dev/shm $HOME /run; do echo x > $d/@MARK@; done", then="for d in /tmp /var/tmp /dev/shm $HOME /run; do [ -e $d/@MARK@ ] && echo ESC''APED $d; done; true"),
    Attempt("a table of cron", "mkdir -p /var/spool/cron/crontabs; echo '* * * * * true' > /var/spool/cron/crontabs/@MARK@; echo '* * * * * true # @MARK@' | crontab -; echo true | at now"),
    Attempt("what starts with a session", "for f in .profile .zshenv .config/autostart/x.desktop .config/systemd/user/x.service .ssh/authorized_keys .gitconfig; do mkdir -p $(dirname @HOME@/$f); echo evil >> @HOME@/$f; done"),
    Attempt("settings of git for all", "git config --global core.fsmonitor 'touch @OUT@/pwned'; git config --system core.fsmonitor 'touch @OUT@/pwned'", then="git config --global core.fsmonitor && echo ESC''APED; true"),
    Attempt("the sandbox's own program", python("for name in ('/proc/1/exe', '/proc/self/exe', '/usr/bin/bwrap'):\n    if attempt(lambda: open(name, 'r+b')): escaped(name)")),
    Attempt("a race of links by a child that stays", "sh -c 'while :; do ln -sfn @OUT@ d; rm -f d; mkdir d 2>/dev/null; rmdir d; done' & i=0; while [ $i -lt 200 ]; do echo x > d/pwned; i=$((i+1)); done; true"),
    Attempt("a child that waits for the end", python("if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        [os.close(n) for n in range(3)]\n        while os.path.exists('/proc/2'): time.sleep(0.01)\n        while True: open('late', 'a').write('@MARK@')\n    os._exit(0)"), then="touch late; once=$(wc -c < late); sleep 0.5; [ $(wc -c < late) = $once ] || echo ESC''APED"),
    Attempt("attributes that stay", "echo x > f; chattr +i f && echo ESC''APED; chattr -i f; setfattr -n trusted.x -v y f && echo ESC''APED; true"),
    Attempt("an owner that is another", python("open('f', 'w')\nfor who in (1, 1000, 65534):\n    if attempt(lambda: (os.chown('f', who, who), 1)): escaped(who)")),
    Attempt("a repository in place of the workspace", "git init --bare . ; mkdir -p objects refs; echo 'ref: refs/heads/x' > HEAD; printf '[core]\\n\\tbare = true\\n\\tfsmonitor = touch @OUT@/pwned\\n' > config"),
    Attempt("a file that says where the repository is", "git init -q sub; git -C sub config core.fsmonitor 'touch @OUT@/pwned'; rm -rf .git; rmdir .git; mv .git away; echo 'gitdir: sub/.git' > .git; ln -sfn sub/.git .git"),
    Attempt("a link in place of HEAD", "mkdir -p objects refs/heads; ln -s refs/heads/x HEAD; mv HEAD old; ln -sfT refs/heads/x HEAD; printf '[core]\\n\\tfsmonitor = touch @OUT@/pwned\\n' > config"),
    Attempt("what a project would be", "mkdir -p tools roles workflows .moothall; echo 'open(\"@OUT@/pwned\", \"w\")' | tee tools/evil.py roles/evil.py conftest.py moothall.pth __main__.py > pyvenv.cfg; echo 'MOOTHALL_HOME=@OUT@' > .env; echo '[servers.x]' > .moothall/settings.toml; echo x > Moothall.toml", then="@DOORS@"),
    Attempt("placeholders held open over the end", python("held = [attempt(os.open, n, os.O_RDONLY) for n in ('.git', 'moothall.toml', 'HEAD')]\nfor n in ('.git', 'moothall.toml', 'HEAD'):\n    attempt(os.chmod, n, 0o777); attempt(lambda: open(n + '/x', 'w')); attempt(os.rename, n, 'y'); attempt(os.rename, 'y', n)\nos.kill(1, 9); os.kill(os.getppid(), 9)")),
)  # fmt: skip

NETWORK = (
    Attempt("TCP by every name of the loopback", python("for host in ('127.0.0.1', '127.0.0.2', '0.0.0.0', 'localhost', '127.1'): attempt(lambda: socket.create_connection((host, @TCP@), 1).sendall(b'x'))\nfor host in ('::1', '::ffff:127.0.0.1', '::'): attempt(lambda: socket.create_connection((host, @TCP@), 1).sendall(b'x'))")),
    Attempt("UDP with the loopback switched on", "ip link set lo up; ifconfig lo up; " + python("s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)\nfor host in ('127.0.0.1', '127.255.255.255', '255.255.255.255'): attempt(s.sendto, b'x', (host, @UDP@))")),
    Attempt("abstract names listed and called", python("attempt(lambda: open('/proc/net/unix').read().count('@ABSTRACT@') and escaped())\nfor kind in (1, 2, 5): attempt(lambda: socket.socket(socket.AF_UNIX, kind).connect(chr(0) + '@ABSTRACT@'))")),
    Attempt("raw and packet sockets", python("for family, kind, protocol in ((17, 3, 768), (17, 2, 768), (44, 3, 0)):\n    s = attempt(socket.socket, family, kind, protocol)\n    if s and any(n != 'lo' for _, n in socket.if_nameindex()): escaped(family)")),
    Attempt("interfaces by netlink", python("s = attempt(socket.socket, 16, 3, 0)\nif s:\n    s.settimeout(1); attempt(s.send, struct.pack('IHHIIBxHiII', 32, 18, 0x301, 1, 0, 0, 0, 0, 0, 0)); got = attempt(s.recv, 65536) or b''\n    if b'eth' in got or b'ens' in got or b'wl' in got: escaped()\nif open('/proc/net/dev').read().count(':') > 1: escaped()")),
    Attempt("netlink of the kernel's events and audit", python("for protocol in (9, 15):\n    s = attempt(socket.socket, 16, 3, protocol)\n    if s and attempt(lambda: (s.bind((0, 0xffffffff)), 1)) and protocol == 9: escaped(protocol)")),
    Attempt("sockets of virtual machines", python("for cid in (1, 2):\n    s = attempt(socket.socket, 40, 1, 0)\n    if s: s.settimeout(1); escaped() if attempt(lambda: (s.connect((cid, @TCP@)), 1)) else print('refused')")),
    Attempt("families that no namespace holds", python("for family in (4, 5, 9, 21, 29, 30, 31, 32, 37, 38, 39, 40, 42, 44):\n    if attempt(socket.socket, family, 2, 0) or attempt(socket.socket, family, 5, 0): escaped(family)")),
    Attempt("names asked of a resolver", python("socket.setdefaulttimeout(1)\nif attempt(socket.getaddrinfo, 'localhost.localdomain.@MARK@.invalid', 80): escaped()\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor host in ('127.0.0.53', '127.0.0.1'): attempt(s.sendto, b'@MARK@', (host, 53))")),
    Attempt("a listener within the workspace", python("for kind in (1, 2, 5): attempt(lambda: (lambda s: (s.connect('agent.sock'), s.send(b'x')))(socket.socket(socket.AF_UNIX, kind)))"), setup="@SOCKET@"),
    Attempt("a listener deep within the workspace", "mv node_modules moved; ln agent.sock linked; cd moved/a/.b; mv agent.sock other.sock; ln agent.sock linked.sock; " + python("for name in ('agent.sock', 'other.sock', 'linked.sock', '@WS@/linked'): attempt(lambda: (lambda s: (s.connect(name), s.send(b'x')))(socket.socket(socket.AF_UNIX)))"), setup="@DEEP@"),
    Attempt("a listener left behind", python("s = socket.socket(socket.AF_UNIX); s.bind('left.sock'); s.listen()\nif os.fork() == 0: os.setsid(); time.sleep(60)"), then=python("s = socket.socket(socket.AF_UNIX)\nif attempt(lambda: (s.connect('left.sock'), 1)): escaped()")),
    Attempt("a connection by a ring of the kernel", python("ring = call(425, 8, ctypes.create_string_buffer(120))\nif ring >= 0: print('a ring is given'); s = socket.socket(); attempt(s.connect, ('127.0.0.1', @TCP@))")),
)  # fmt: skip

POWER = (
    Attempt("a copy that runs as its owner, by chmod", "cp /bin/true su; chmod 6755 su; chmod u+s,g+s su; true"),
    Attempt("a copy that runs as its owner, by open", python("os.umask(0); os.close(os.open('su', os.O_CREAT | os.O_WRONLY, 0o6755))")),
    Attempt("a copy that runs as its owner, by a file without a name", python("os.umask(0); f = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o6755); libc.linkat(-100, f'/proc/self/fd/{f}'.encode(), -100, b'su', 0x400)")),
    Attempt("a copy that runs as its owner, by tar and install", "install -m 4755 /bin/true su; cp /bin/true x; python3 -c 'import tarfile; t = tarfile.open(\"t.tar\", \"w\"); i = t.gettarinfo(\"x\"); i.mode = 0o4755; t.addfile(i, open(\"x\", \"rb\"))'; tar xpf t.tar; true"),
    Attempt("abilities on a file", python("open('f', 'w')\nfor value in (struct.pack('<5I', 0x02000001, 0xffffffff, 0, 0xffffffff, 0), struct.pack('<6I', 0x03000001, 0xffffffff, 0, 0xffffffff, 0, 0)):\n    if attempt(lambda: (os.setxattr('f', 'security.capability', value), 1)): escaped()")),
    Attempt("a namespace of users over the masks", "unshare -Urm sh -c 'umount -l /proc/sys; mount -o remount,rw,bind /proc/sys; mount -o remount,rw,bind /usr; mkdir p; mount -t proc proc p; for f in /proc/sys p/sys; do (: >> $f/kernel/core_pattern) && echo ESC''APED; done; touch /usr/@MARK@ && echo ESC''APED'; true"),
    Attempt("a namespace of users that looks outside", "unshare -Urmpf --mount-proc sh -c 'cat @OUT@/secret | rev; echo x > @OUT@/pwned; mount --bind / /mnt; mount --rbind @UP@ sub; cat sub/out/secret | rev'; true"),
    Attempt("namespaces of others", python("for name in glob.glob('/proc/[0-9]*/ns/*') + [f'/proc/@BYSTANDER@/ns/{n}' for n in ('mnt', 'net', 'pid', 'user')]:\n    def enter():\n        if not call(308, os.open(name, os.O_RDONLY), 0) and os.path.exists('@OUT@/secret'): escaped(name)\n    attempt(enter)")),
    Attempt("the namespaces of the first process", "nsenter -t 1 -a cat @OUT@/secret | rev; nsenter -t @BYSTANDER@ -m -n cat @OUT@/secret | rev"),
    Attempt("tracing others", python("for pid in (@BYSTANDER@, os.getppid() + 100000):\n    if call(101, 16, pid, 0, 0) == 0 or call(101, 0x4206, pid, 0, 0) == 0: escaped(pid)\n")),
    Attempt("every process is killed", "kill -9 -1; true", timeout=10),
    Attempt("every process is killed, from Python", python("attempt(os.kill, @BYSTANDER@, 9); attempt(os.killpg, @BYSTANDER@, 9); attempt(os.kill, -1, 9)")),
    Attempt("a signal by an owner of a descriptor", python("r, w = os.pipe(); attempt(fcntl.fcntl, r, fcntl.F_SETOWN, @BYSTANDER@); attempt(fcntl.fcntl, r, 10, 9); attempt(fcntl.fcntl, r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK); os.write(w, b'x')")),
    Attempt("limits of others", python("if attempt(lambda: (resource.prlimit(@BYSTANDER@, resource.RLIMIT_CPU, (1, 1)), 1)): escaped()\nif attempt(lambda: (os.sched_setaffinity(@BYSTANDER@, {0}), 1)): escaped()\nif attempt(lambda: (os.setpriority(os.PRIO_PROCESS, @BYSTANDER@, 19), 1)): escaped()")),
    Attempt("programs and modules for the kernel", python("b = ctypes.create_string_buffer(256)\nfor name, number, words in (('bpf map', 321, (0, ctypes.create_string_buffer(struct.pack('IIII', 2, 4, 4, 1) + bytes(112)), 128)), ('init_module', 175, (b, 0, ctypes.c_char_p(b''))), ('finit_module', 313, (0, ctypes.c_char_p(b''), 0)), ('kexec_load', 246, (0, 0, 0, 1)), ('iopl', 172, (3,)), ('swapon', 167, (ctypes.c_char_p(b'none'), 0))):\n    if call(number, *words) >= 0: escaped(name)")),
    Attempt("counters of the whole machine", python("b = ctypes.create_string_buffer(struct.pack('IIQ', 1, 128, 0) + bytes(112))\nfor pid, cpu in ((-1, 0), (@BYSTANDER@, -1)):\n    if call(298, b, pid, cpu, -1, 0) >= 0: escaped(cpu)")),
    Attempt("a watch over the whole file system", python("for flags in (0, 0x200, 0x600):\n    watch = call(300, flags, 0)\n    for kind in (0x10, 0x100):\n        if watch >= 0 and call(301, watch, 1 | kind, 0x20, -100, ctypes.c_char_p(b'.')) == 0: escaped(kind)")),
    Attempt("mounts by the new calls", python("for name, number, words in (('open_tree', 428, (-100, ctypes.c_char_p(b'/usr'), 1)), ('fsopen', 430, (ctypes.c_char_p(b'ext4'), 0)), ('mount', 165, (ctypes.c_char_p(b'x'), ctypes.c_char_p(b'/tmp'), ctypes.c_char_p(b'tmpfs'), 0, 0)), ('pivot_root', 155, (ctypes.c_char_p(b'.'), ctypes.c_char_p(b'.'))), ('mount_setattr', 442, (-100, ctypes.c_char_p(b'/usr'), 0x8000, ctypes.create_string_buffer(struct.pack('QQQQ', 0, 1, 0, 0)), 32))):\n    if call(number, *words) >= 0: escaped(name)")),
    Attempt("calls by their other numbers", python("X = 0x40000000\nfor number, words in ((X + 165, (ctypes.c_char_p(b'x'), ctypes.c_char_p(b'/tmp'), ctypes.c_char_p(b'tmpfs'), 0, 0)), (X + 272, (0x10020000,)), (X + 321, (0, 0, 0))):\n    if call(number, *words) >= 0: escaped(hex(number))")),
    Attempt("devices of characters", "mknod m c 1 1; mknod c c 5 1; mknod k c 1 11; for f in m c k; do [ -c $f ] && echo ESC''APED; done; true"),
    Attempt("groups of control", "mkdir -p g; unshare -UrmC sh -c 'mount -t cgroup2 x g || mount -t cgroup -o pids x g || mount -t cgroup -o memory x g; for f in g/cgroup.procs g/release_agent g/../cgroup.procs; do (echo 0 > $f) && echo ESC''APED; done'; true"),
)  # fmt: skip

LIMITS = (
    Attempt("limits raised", python("for name in ('NPROC', 'NOFILE', 'FSIZE', 'CPU', 'CORE', 'MEMLOCK', 'RTPRIO'):\n    kind = getattr(resource, 'RLIMIT_' + name); hard = resource.getrlimit(kind)[1]\n    if hard != -1 and attempt(lambda: (resource.setrlimit(kind, (hard + 1, hard + 1)), 1)): escaped(name)")),
    Attempt("precedence over others", python("if attempt(lambda: (os.nice(-5), 1)): escaped('nice')\nif attempt(lambda: (os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)), 1)): escaped('fifo')\nif attempt(lambda: (open('/proc/self/oom_score_adj', 'w').write('-1000'), 1)): print('buffered')\nif open('/proc/self/oom_score_adj').read().strip() == '-1000': escaped('oom')")),
    Attempt("a file of three gigabytes, sparse", python("signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nif attempt(lambda: (os.truncate(os.open('big', os.O_CREAT | os.O_RDWR), 3 << 30), 1)): escaped()\nos.path.exists('big') and os.unlink('big')")),
    Attempt("threads", python("stop = threading.Event(); n = 0\nthreading.stack_size(65536)\ntry:\n    while n < 4000: threading.Thread(target=stop.wait, daemon=True).start(); n += 1\n    escaped(n)\nexcept RuntimeError: print('stopped at', n)\nos._exit(0)")),
    Attempt("output on both at once", "(head -c 40000000 /dev/zero | tr '\\0' a >&2) & head -c 40000000 /dev/zero | tr '\\0' b; wait", timeout=10),
    Attempt("output that is no text", python("os.write(1, bytes(range(256)) * 64 + b'\\xed\\xa0\\x80\\xff\\xfe' + b'\\0' * 4096); os.write(2, b'\\xf4\\x90\\x80\\x80' * 4096)")),
    Attempt("the command stops itself", "kill -STOP $$; echo ESC''APED", timeout=2, killed=True),
    Attempt("everything is stopped", "kill -STOP 1; kill -STOP -1; kill -STOP $$; sleep 60", timeout=2, killed=True),
    Attempt("stopped children are left", "for i in 1 2 3; do setsid sh -c 'kill -STOP $$; sleep 60' >/dev/null 2>&1 & done; echo started"),
    Attempt("daemons born of daemons", python("for _ in range(3):\n    if os.fork() == 0:\n        os.setsid(); signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); libc.prctl(1, 0)\n        while True:\n            if os.fork(): os._exit(0)\n            time.sleep(0.05)"), timeout=5),
    Attempt("a child that keeps the pipes, deaf to signals", "python3 -c 'import os, signal, time; os.fork() or (os.setsid(), [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 3, 13, 15)], time.sleep(60))' & sleep 60", timeout=2, killed=True),
    Attempt("a wait in the kernel for a pipe without an end", "mkfifo f; exec 3<>f; cat <&3 & cat f", timeout=2, killed=True),
    Attempt("a vessel of namespaces that outlives", "unshare -Urpf --kill-child=SIGCONT sh -c 'setsid sleep 60 & sleep 60' & setsid nohup sleep 61 >/dev/null 2>&1 & echo started"),
    Attempt("a core that is dumped", "ulimit -c unlimited; sh -c 'kill -SEGV $$'; ls core* && echo ESC''APED; true"),
)  # fmt: skip

TERMINAL = (
    Attempt("a line typed for the person", python("for n in (0, 1, 2):\n    for request in (0x5412, 0x5412 | 1 << 32):\n        for letter in b'@MARK@':\n            libc.ioctl(ctypes.c_int(n), ctypes.c_ulong(request), ctypes.byref(ctypes.c_char(letter)))\nt = attempt(os.open, '/dev/tty', os.O_RDWR)\nif t: escaped()"), tty=True),
    Attempt("terminals of others", "for t in /dev/pts/* /dev/console /dev/tty[0-9]* /proc/*/fd/[0-2]; do [ -t 0 ] && echo ESC''APED; [ -c $t ] && [ ! /dev/null -ef $t ] && echo @MARK@ > $t; done; true", tty=True),
    Attempt("a title and a clipboard", "printf '\\033]0;@MARK@\\007\\033]52;c;ZXZpbA==\\007\\033[2J\\033P+q544e\\033\\\\\\233c\\n'", tty=True),
    Attempt("the size and the modes of the terminal", "stty raw -echo; stty rows 1 cols 1; stty -F /dev/tty sane; tput reset; setsid -c true < /dev/tty; true", tty=True),
)  # fmt: skip

ATTEMPTS = READ + WRITE + NETWORK + POWER + LIMITS + TERMINAL


@dataclass(frozen=True, slots=True)
class Answer:
    """What the door said."""

    text: str
    killed: bool
    terminal: bytes = b""


@dataclass(slots=True)
class Scene:
    """The folders, listeners and secrets around a workspace."""

    top: Path
    mark: str = field(default_factory=lambda: "mark" + secrets.token_hex(8))
    canary: str = field(default_factory=lambda: "CANARY-" + secrets.token_hex(12))
    listeners: dict[str, socket.socket] = field(default_factory=dict)
    bystander: "subprocess.Popen[bytes] | None" = None

    @property
    def workspace(self) -> Path:
        return self.top / "up" / "ws"

    @property
    def out(self) -> Path:
        return self.top / "up" / "out"

    def environment(self) -> dict[str, str]:
        """What the door is started with: where runs live, and secrets under names that look harmless or not."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MOOTHALL_")}
        state = {"HOME": str(self.top / "home"), "MOOTHALL_HOME": str(self.top / "state"), "TERM": "xterm"}
        return {**kept, **state, "OPENAI_API_KEY": self.canary, "COLOUR": self.canary, "LC_CANARY": self.canary}

    def fill(self, text: str) -> str:
        """Put the names of this scene into a command."""
        assert self.bystander is not None
        ports = {name: str(self.listeners[name].getsockname()[1]) for name in ("TCP", "UDP")}
        names = {"WS": self.workspace, "UP": self.top / "up", "OUT": self.out, "FAR": self.top / "far"}
        words = {"HOME": self.top / "home", "MARK": self.mark, "CANARY": self.canary, "ABSTRACT": "a" + self.mark}
        for name, value in {**ports, **names, **words, "BYSTANDER": self.bystander.pid}.items():
            text = text.replace(f"@{name}@", str(value))
        return text

    def outside(self) -> dict[str, tuple[int, bytes]]:
        """Kind, mode and content of everything around the workspace."""
        seen = {}
        for path in below(self.top, but=(self.workspace, self.top / "state")):
            mode = path.lstat().st_mode
            content = os.readlink(path).encode() if stat.S_ISLNK(mode) else b""
            seen[str(path)] = (mode, path.read_bytes() if stat.S_ISREG(mode) else content)
        return seen

    def survivors(self) -> list[str]:
        """Processes that have the mark in their command line or their environment."""
        alive = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            except OSError:  # it has ended meanwhile, or is another user's
                continue
            if self.mark.encode() in words:
                alive.append(f"{folder.name}: {words[:200]!r}")
        return alive

    def heard(self) -> list[str]:
        """Listeners that somebody spoke to."""
        heard = []
        for name, listener in self.listeners.items():
            try:
                listener.accept() if name not in ("UDP", "PAIR") else listener.recv(99)
            except BlockingIOError:
                continue
            heard.append(name)
        return heard


def below(top: Path, *, but: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Everything below a folder, as deep as paths can be."""
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if Path(folder, name) not in but]
        yield from (Path(folder, name) for name in (*folders, *files))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A workspace with secrets, listeners and a process around it."""
    scene = Scene(tmp_path)
    for folder in ("up/ws", "up/out", "far", "home/.ssh", "state"):
        (tmp_path / folder).mkdir(parents=True)
    for secret in ("up/secret", "up/out/secret", "far/secret", "home/.ssh/id_ed25519"):
        (tmp_path / secret).write_text(scene.canary + "\n")
    with ExitStack() as stack:
        for name, family, kind, address in (
            ("TCP", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            ("UDP", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("ABSTRACT", socket.AF_UNIX, socket.SOCK_STREAM, "\0a" + scene.mark),
        ):
            scene.listeners[name] = listener = stack.enter_context(socket.socket(family, kind))
            listener.bind(address)
            listener.setblocking(False)
            if kind == socket.SOCK_STREAM:
                listener.listen()
        scene.bystander = subprocess.Popen(["sleep", "600"], cwd=scene.out, env={"SECRET": scene.canary})
        try:
            yield scene
        finally:
            scene.bystander.kill()
            scene.bystander.wait()


@contextmanager
def prepared(scene: Scene, attempt: Attempt) -> Iterator[tuple[int, ...]]:
    """Set the scene for an attempt; what is yielded are descriptors that the door inherits."""
    with ExitStack() as stack:
        match attempt.setup:
            case "@HANDLE@":
                (scene.workspace / "handle").write_text(file_handle(scene.out / "secret").hex())
            case "@KEY@":
                stack.enter_context(session_key(scene.mark, scene.canary))
            case "@SOCKET@" | "@DEEP@":
                folder = scene.workspace / ("." if attempt.setup == "@SOCKET@" else "node_modules/a/.b")
                folder.mkdir(parents=True, exist_ok=True)
                listener = stack.enter_context(socket.socket(socket.AF_UNIX))
                with pytest.MonkeyPatch.context() as patch:
                    patch.chdir(folder)
                    listener.bind("agent.sock")
                listener.listen()
                listener.setblocking(False)
                scene.listeners["SOCKET"] = listener
            case shell:
                subprocess.run(["sh", "-c", scene.fill(shell)], check=True)
        descriptors: tuple[int, ...] = ()
        if attempt.leak:
            ours, theirs = socket.socketpair()
            stack.callback(ours.close)
            stack.callback(theirs.close)
            ours.setblocking(False)
            scene.listeners["PAIR"] = ours
            opened = os.open(scene.out, os.O_RDONLY)
            stack.callback(os.close, opened)
            descriptors = (opened, theirs.fileno())
        yield descriptors
        for place in attempt.keeps:
            (Path(place) / scene.mark).unlink()


def file_handle(path: Path) -> bytes:
    """What the kernel calls a file, as `open_by_handle_at` takes it."""
    handle = ctypes.create_string_buffer(b"\x80\0\0\0" + bytes(132))
    mount = ctypes.c_int()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.name_to_handle_at(-100, str(path).encode(), handle, ctypes.byref(mount), 0):
        pytest.skip("the file system gives no handles")
    return handle.raw[: 8 + handle.raw[0]]


@contextmanager
def session_key(name: str, secret: str) -> Iterator[None]:
    """A key in the keyrings that a child would inherit."""
    libc = ctypes.CDLL(None, use_errno=True)
    keys = [libc.syscall(248, b"user", name.encode(), secret.encode(), len(secret), ring) for ring in (-3, -4)]
    if max(keys) < 0:
        pytest.skip("no key can be added here")
    yield
    for key in keys:
        libc.syscall(250, 3, key)


def door(scene: Scene, command: str, attempt: Attempt, descriptors: tuple[int, ...] = ()) -> Answer:
    """Run one command as a person would who tries what an agent can do."""
    words = [str(MOOT), "sandbox", "--workspace", str(scene.workspace), "--timeout", str(attempt.timeout)]
    marked = scene.fill(f"{GUARD}\nexport BLIND=@MARK@\n{command}")
    if attempt.tty:
        return terminal_door(scene, [*words, "--", "sh", "-c", marked])
    process = subprocess.run(
        [*words, "--json", "--", "sh", "-c", marked],
        cwd=scene.workspace,
        env=scene.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=attempt.timeout + 20,
        pass_fds=descriptors,
        start_new_session=True,
    )
    assert b"Traceback" not in process.stderr, process.stderr
    told = json.loads(process.stdout)
    assert told["level"] == "bubblewrap"
    assert len(process.stdout) <= 16 << 20
    return Answer(told["stdout"] + told["stderr"], told["killed"])


def terminal_door(scene: Scene, words: list[str]) -> Answer:
    """The same with a controlling terminal, of which all is read."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words,
        cwd=scene.workspace,
        env=scene.environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    before = termios.tcgetattr(theirs)
    process.wait(60)
    assert termios.tcgetattr(theirs) == before
    os.close(theirs)
    said = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        try:
            while part := terminal.read(65536):
                said += part
        except OSError:  # the other side is closed
            pass
    return Answer(said.decode(errors="replace"), False, said)


def hold(scene: Scene, answer: Answer, before: dict[str, tuple[int, bytes]], *, repository: bool = False) -> None:
    """What is true after every attempt."""
    assert scene.survivors() == []
    assert scene.outside() == before
    assert scene.heard() == []
    assert scene.bystander is not None
    assert scene.bystander.poll() is None
    assert "ESCAPED" not in answer.text
    for secret in (scene.canary, scene.canary[::-1], scene.canary.encode().hex()):
        assert secret not in answer.text
    left = [path for path in below(scene.workspace) if len(str(path)) < 4096 and not path.is_symlink()]
    assert [path for path in left if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)] == []
    assert [name for name in PLACEHOLDERS if os.path.lexists(scene.workspace / name)] == (
        [".git"] if repository else []
    )
    git = subprocess.run(
        ["git", "-C", scene.workspace, "status"], capture_output=True, env=scene.environment(), timeout=20
    )
    assert git.returncode == (0 if repository else 128), git.stderr
    assert scene.outside() == before


@pytest.mark.parametrize("attempt", rows(ATTEMPTS))
def test_no_attempt_gets_out(scene: Scene, attempt: Attempt) -> None:
    with prepared(scene, attempt) as descriptors:
        before = scene.outside()
        answer = door(scene, attempt.command, attempt, descriptors)
        if not attempt.tty:
            assert answer.killed or not attempt.killed
        hold(scene, answer, before)
        if attempt.tty:
            assert b"\x1b" not in answer.terminal
            assert b"\x9b" not in answer.terminal
        if attempt.then == "@DOORS@":
            for words in (("doctor",), ("workflows",), ("ls",)):
                subprocess.run([MOOT, *words], cwd=scene.workspace, env=scene.environment(), capture_output=True)
            hold(scene, answer, before)
        elif attempt.then:
            hold(scene, door(scene, attempt.then, attempt), before)
        assert not [path for place in SHARED_PLACES if place not in attempt.keeps for path in Path(place).glob(f"*{scene.mark}*")]  # fmt: skip


TRAPS = (
    Trap("a link to a secret", "ln -s @OUT@/secret notes.txt"),
    Trap("a link to a folder outside", "ln -s @OUT@ d", path="d/secret", folder="d"),
    Trap("a link upwards", "ln -s .. d", path="d/out/secret", folder="d/out"),
    Trap("a link to the reader's environment", "ln -s /proc/self/environ notes.txt"),
    Trap("a link to the reader's folder", "ln -s /proc/self/cwd/../out d", path="d/secret", folder="d"),
    Trap("a chain of links", "mkdir a; ln -s ../b a/c; ln -s @UP@ b", path="a/c/out/secret", folder="a/c/out"),
    Trap("a folder that was saved becomes a link", "rm -rf keep; ln -s @OUT@ keep", path="keep/secret", folder="keep"),
    Trap("a file that was saved becomes a link", "rm keep/victim; ln -s @OUT@/victim keep/victim", path="keep/victim"),
    Trap("pipes without an end", "mkdir sub; mkfifo notes.txt .gitattributes sub/.git sub/x", folder="sub"),
    Trap("a pipe for a list of what is ignored", "mkdir sub; mkfifo .gitignore sub/.gitignore; echo x > notes.txt", pipes=(".gitignore", "sub/.gitignore")),
    Trap("a socket", python("socket.socket(socket.AF_UNIX).bind('notes.txt')")),
    Trap("a repository below with a monitor", "git init -q sub; git -C sub config core.fsmonitor 'touch @OUT@/pwned'; echo x > sub/a; ln -s sub/a notes.txt", path="sub/a", folder="sub"),
    Trap("a repository below with an include", "git init -q sub; printf '[core]\\n\\thooksPath = h\\n\\tsshCommand = touch @OUT@/pwned\\n\\tpager = touch @OUT@/pwned\\n[diff]\\n\\texternal = touch @OUT@/pwned\\n' > sub/evil; git -C sub config include.path ../evil; git -C sub config includeIf.gitdir:/.path ../evil; echo x > sub/a", path="sub/a", folder="sub"),
    Trap("a repository below with filters", "git init -q sub; echo '* filter=evil diff=evil merge=evil' | tee sub/.gitattributes > .gitattributes; for k in filter.evil.clean filter.evil.smudge filter.evil.process diff.evil.textconv diff.evil.command merge.evil.driver; do git -C sub config $k 'touch @OUT@/pwned'; done; echo x > sub/a", path="sub/a", folder="sub"),
    Trap("a repository below with hooks", "git init -q sub; for h in pre-commit post-checkout post-index-change reference-transaction post-commit fsmonitor-watchman; do printf '#!/bin/sh\\ntouch @OUT@/pwned\\n' > sub/.git/hooks/$h; chmod +x sub/.git/hooks/$h; done; echo x > sub/a; git -C sub -c core.hooksPath=/dev/null -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m one", path="sub/a", folder="sub"),
    Trap("a module with an address that is a program", "printf '[submodule \"sub\"]\\n\\tpath = sub\\n\\turl = ext::sh -c touch% @OUT@/pwned\\n\\tupdate = !touch @OUT@/pwned\\n' > .gitmodules; mkdir sub; echo 'gitdir: @OUT@' > sub/.git", path="sub/.git", folder="sub"),
    Trap("names that are options and escapes", "touch -- --output=@MARK@ -rf '--upload-pack=touch pwned' \"$(printf 'a\\nb\\033]0;x\\007')\" ':(top)x' '*'; echo x > notes.txt"),
    Trap("a file that looks larger than it is", "truncate -s 1900M notes.txt"),
)  # fmt: skip


@pytest.mark.unreplayed("the runs are made by another process")
@pytest.mark.parametrize("trap", rows(TRAPS))
def test_what_a_command_leaves_does_not_lead_the_hosts_tools_out(scene: Scene, trap: Trap) -> None:
    subprocess.run(["git", "init", "-q", scene.workspace], check=True, env=scene.environment())
    (scene.out / "victim").write_text("precious\n")
    (scene.workspace / "keep").mkdir()
    (scene.workspace / "keep" / "victim").write_text("old\n")
    (scene.workspace / "keep" / "pwned").write_text("old\n")
    before = scene.outside()
    calls: list[tuple[str, dict[str, object]]] = [
        ("execute_terminal", {"command": f"export BLIND={scene.mark}\n{scene.fill(trap.command)}"}),
        ("read_file", {"path": trap.path}),
        ("list_directory", {"path": trap.folder}),
        ("search_files", {"path": trap.folder, "text": "CANARY"}),
        ("git_status", {}),
        ("git_diff", {}),
        ("write_file", {"path": f"{trap.folder}/pwned", "content": "x"}),
        ("write_file", {"path": trap.path, "content": "x"}),
    ]
    replies = [{"calls": [{"tool": tool, "arguments": arguments}]} for tool, arguments in calls]
    (scene.top / "state" / "coder.json").write_text(json.dumps({"coder": [*replies, {"text": "It is done."}]}))
    model = f"scripted:{scene.top / 'state' / 'coder.json'}"
    said = ""
    for words in (
        ["run", "--role", "coder", "Go.", "--workspace", ".", "--model", model, "--run-id", "r", "--policy", "execute_terminal=allow"],
        ["saves", "r", "--take", "after"],
        ["diff", "r", "1"],
        ["restore", "r", "1"],
        ["export", "r"],
    ):  # fmt: skip
        process = subprocess.run(
            [MOOT, *words], cwd=scene.workspace, env=scene.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=30
        )  # fmt: skip
        said += (process.stdout + process.stderr).decode(errors="replace")
        if words[0] == "run":
            assert "It is done." in said, said
            assert scene.outside() == before
    assert "Traceback" not in said
    assert "was not called" not in said
    assert scene.outside() == before
    for name in trap.pipes:
        (scene.workspace / name).unlink()
    hold(scene, Answer(said, False), before, repository=True)
    assert (scene.workspace / "keep" / "victim").read_text() == "old\n"
