"""Python as the rules see it, by its syntax tree: shell texts, SQL that is put together, secrets read or sent.

Texts are computed as far as constants of the same file go; everything else is a hole. What is printed, logged or raised
is only mentioned, and so is a docstring.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

from moothall.machines.arena.figures import names
from moothall.machines.arena.rules.containers import SOCKET, nested_reasons
from moothall.machines.arena.rules.secrets import secret_in
from moothall.machines.arena.rules.shell import is_env_file
from moothall.machines.arena.rules.sql import is_built, is_sql
from moothall.machines.arena.rules.texts import HOME, UNKNOWN, WORK

SHELL_CALLS = names(
    "system popen run call check_call check_output Popen getoutput getstatusoutput create_subprocess_shell"
    " create_subprocess_exec exec_command sudo local execl execlp execv execvp spawnl spawnlp spawnv spawnvp"
)
SAYING = names(
    "print debug info warning warn error exception critical log fail skip echo secho write_line add_argument"
    " ArgumentParser append_message help"
)
EXECUTING = names("execute executemany executescript exec_driver_sql raw read_sql read_sql_query query fetch")
READING = names("open read_text read_bytes copy copyfile copy2 copytree fdopen read_csv from_private_key_file")
FETCHING = re.compile(r"(?:requests|httpx|session|client|http|aiohttp)\w*\.(?:get|post|request)$|urlopen$|urlretrieve$")
SENDING = re.compile(
    r"(?:requests|httpx|session|client|http|aiohttp)\w*\.(?:post|put|patch|request|get)$|urlopen$|(?:^|\.)Request$"
    r"|\.(?:sendall|send|sendto|sendmail|send_message)$"
)
DECODING = re.compile(r"b64decode$|b32decode$|unhexlify$|fromhex$|a2b_base64$|decompress$")
COMPOSED = "(composed by the driver)"
BOMB = re.compile(r"while\s+(?:True|1)\s*:\s*os\.fork\(\)")


@dataclass(slots=True)
class PythonFindings:
    """What a Python text would do that rules ask about."""

    shells: list[str] = field(default_factory=list)
    words: list[list[str]] = field(default_factory=list)
    reasons: list[tuple[str, str]] = field(default_factory=list)


def read_python(text: str) -> PythonFindings | None:
    """What a Python text would do; None where it is not Python that can be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    findings = PythonFindings()
    try:
        _Walk(tree, findings).walk()
    except RecursionError:
        return None
    if BOMB.search(text):
        findings.reasons.append(("destructive-shell", "a loop forks without end: a fork bomb"))
    return findings


def dotted_name(node: ast.expr) -> str:
    """`a.b.c` of an expression, as far as it is one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        return dotted_name(node.func) + "()"
    return ""


class _Walk:
    def __init__(self, tree: ast.Module, findings: PythonFindings) -> None:
        self.tree = tree
        self.findings = findings
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.bindings: dict[str, list[ast.expr | None]] = {}
        self.depth = 0
        self.naming: set[str] = set()
        for node in ast.walk(tree):
            self.bind(node)

    def bind(self, node: ast.AST) -> None:
        """Which expressions a name may stand for; None for what comes from elsewhere."""
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.bind_target(target, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                self.bindings.setdefault(name, []).append(value)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self.bindings.setdefault(name, []).append(value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self.bindings.setdefault(name, []).append(value)
            case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
                self.bind_target(target, None)
            case ast.withitem(optional_vars=ast.expr() as target, context_expr=value):
                self.bind_target(target, value)
            case ast.arg(arg=name):
                self.bindings.setdefault(name, []).append(None)
            case _:
                pass

    def bind_target(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.bindings.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            for inner in target.elts:
                self.bind_target(inner, None)

    # ------------------------------------------------------------------ texts

    def text(self, node: ast.expr | None) -> str:
        """The text of an expression, with a hole for whatever is not constant."""
        if node is None or self.depth > 25:
            return UNKNOWN
        self.depth += 1
        try:
            return self.read_text(node)
        finally:
            self.depth -= 1

    def read_text(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str(value)):
                return value
            case ast.Constant(value=bytes(raw)):
                return raw.decode(errors="replace")
            case ast.Constant(value=value):
                return str(value)
            case ast.JoinedStr(values=values):
                return "".join(self.text(value) for value in values)
            case ast.FormattedValue(value=value):
                return self.text(value)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.text(left) + self.text(right)
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return self.filled(re.split(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]", self.text(left)), right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return f"{self.text(left)}/{self.text(right)}"
            case ast.BinOp(left=left, op=ast.Mult()):
                return self.text(left)
            case ast.Name(id=name):
                return self.named(name)
            case ast.IfExp(body=body, orelse=other):
                return UNKNOWN if UNKNOWN in self.text(other) else self.text(body)
            case ast.Subscript() if dotted_name(node.value) == "os.environ" and self.text(node.slice) == "HOME":
                return HOME
            case ast.Call():
                return self.called_text(node)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return "".join(self.text(element) for element in elements)
            case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
                return self.text(element)
        return UNKNOWN

    def filled(self, pieces: list[str], values: ast.expr) -> str:
        inner = self.text(values)
        return inner.join(pieces) if UNKNOWN not in inner else UNKNOWN.join(pieces)

    def named(self, name: str) -> str:
        values = self.bindings.get(name)
        if not values or name in self.naming or any(value is None for value in values):
            return UNKNOWN
        self.naming.add(name)
        texts = [self.text(value) for value in values[:20]]
        self.naming.discard(name)
        if len(texts) > 1 and any(UNKNOWN in text for text in texts):
            return texts[0] if is_sql(texts[0]) and UNKNOWN in texts[0] else UNKNOWN
        return texts[0]

    def called_text(self, node: ast.Call) -> str:
        name = dotted_name(node.func)
        last = name.rsplit(".", 1)[-1]
        if last == "expanduser":
            source = self.text(node.args[0] if node.args else self.receiver(node))
            return re.sub(r"^~[\w-]*", HOME, source)
        if name.endswith(("Path.home", "Path.home()")):
            return HOME
        if name.endswith(("getcwd", "Path.cwd")):
            return WORK
        if name == "shlex.split":
            return self.text(node.args[0]) if node.args else UNKNOWN
        if name in ("os.getenv", "os.environ.get") and node.args and self.text(node.args[0]) == "HOME":
            return HOME
        if last in ("Path", "str", "dedent", "PurePath", "PosixPath", "realpath", "abspath", "fspath", "text"):
            return self.text(node.args[0]) if node.args else UNKNOWN
        if last in ("SQL", "Identifier", "Placeholder", "Composed") and (
            node.args and UNKNOWN not in self.text(node.args[0])
        ):
            return COMPOSED
        if last in ("Identifier", "Literal", "Placeholder"):
            return COMPOSED
        if last == "join" and name.startswith(("os.path", "path")):
            return "/".join(self.text(argument) for argument in node.args)
        if last == "join" and isinstance(node.func, ast.Attribute) and node.args:
            if isinstance(node.args[0], ast.List | ast.Tuple):
                return self.text(node.func.value).join(self.text(element) for element in node.args[0].elts)
            inner = self.text(node.args[0])
            return UNKNOWN if UNKNOWN in inner else inner
        if last == "joinpath" and isinstance(node.func, ast.Attribute):
            return "/".join([self.text(node.func.value), *map(self.text, node.args)])
        if last in ("format", "format_map") and isinstance(node.func, ast.Attribute):
            return self.formatted(node, node.func)
        if last in ("strip", "lower", "upper", "encode", "lstrip", "rstrip", "replace", "resolve", "absolute", "split"):
            return self.text(self.receiver(node))
        return UNKNOWN

    def receiver(self, node: ast.Call) -> ast.expr | None:
        return node.func.value if isinstance(node.func, ast.Attribute) else None

    def formatted(self, node: ast.Call, function: ast.Attribute) -> str:
        if isinstance(function.value, ast.Call) and not isinstance(function.value.func, ast.Attribute | ast.Name):
            return UNKNOWN
        if isinstance(function.value, ast.Call) and dotted_name(function.value.func).endswith("SQL"):
            return COMPOSED
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        pieces = re.split(r"\{[^{}]*\}", self.text(function.value))
        constants = values and all(UNKNOWN not in self.text(value) for value in values)
        return (self.text(values[0]) if constants else UNKNOWN).join(pieces)

    # ------------------------------------------------------------------ what is done

    def walk(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                self.look_at_call(node)
            if isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call | ast.AugAssign):
                self.look_for_sql(node)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and SOCKET.search(node.value):
                self.look_at_socket(node)

    def is_said(self, node: ast.AST) -> bool:
        """Whether an expression is only printed, logged, raised or a docstring."""
        if isinstance(self.parents.get(node), ast.Expr):
            return not isinstance(node, ast.Call)
        while (above := self.parents.get(node)) is not None and isinstance(above, ast.expr | ast.keyword):
            if isinstance(above, ast.Call) and node is not above.func:
                last = dotted_name(above.func).rsplit(".", 1)[-1]
                if last in SAYING or last.endswith(("Error", "Exception", "Warning")):
                    return True
            node = above
        return isinstance(self.parents.get(node), ast.Raise | ast.Assert)

    def look_at_socket(self, node: ast.Constant) -> None:
        if not self.is_said(node):
            self.findings.reasons.append(("docker-socket", "the code names a container engine's socket"))

    def look_for_sql(self, node: ast.AST) -> None:
        match node:
            case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
                text = self.text(node)
                if isinstance(node, ast.BinOp) and not is_built(text):
                    text = self.continued(node)
            case ast.Call(func=ast.Attribute(attr="format" | "format_map" | "join")):
                text = self.text(node)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add() | ast.Mod(), value=value):
                starts = [self.text(start) for start in self.bindings.get(name, []) if start is not None]
                added = self.text(value)
                text = next((start for start in starts if is_sql(start)), "") + added if UNKNOWN in added else ""
            case _:
                return
        above = self.parents.get(node)
        executed = isinstance(above, ast.Call) and dotted_name(above.func).rsplit(".", 1)[-1] in EXECUTING
        if is_built(text, executed=executed) and not self.is_said(node):
            reason = "the code puts SQL together from variables; bind parameters instead"
            self.findings.reasons.append(("string-built-sql", reason))

    def continued(self, node: ast.BinOp) -> str:
        """The text of a sum that goes on from SQL which a name held before."""
        first: ast.expr = node
        added: list[str] = []
        while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add):
            added.insert(0, self.text(first.right))
            first = first.left
        if not isinstance(first, ast.Name):
            return ""
        starts = [self.text(start) for start in self.bindings.get(first.id, []) if start is not None]
        return next((start for start in starts if is_sql(start)), "") + "".join(added)

    def look_at_call(self, node: ast.Call) -> None:
        name = dotted_name(node.func)
        last = name.rsplit(".", 1)[-1]
        if last in SHELL_CALLS or last == "spawn":
            self.keep_shell(node, last)
        if last == "rmtree" and node.args:
            self.findings.words.append(["rm", "-r", self.text(node.args[0])])
        if last in READING:
            self.look_for_secret(node)
        if last in ("exec", "eval", "compile") and "." not in name and node.args:
            self.look_at_code(node.args[0])
        if SENDING.search(name):
            self.look_at_sent(node)
        settings = {keyword.arg: _constant(keyword.value) for keyword in node.keywords if keyword.arg}
        if {"privileged", "pid_mode", "cap_add", "volumes", "host_pid"} & set(settings):
            self.findings.reasons += [("privileged-container", reason) for reason in nested_reasons(settings)]

    def keep_shell(self, node: ast.Call, last: str) -> None:
        if not node.args:
            first = next((keyword.value for keyword in node.keywords if keyword.arg in ("args", "cmd")), None)
        else:
            first = node.args[0]
        if isinstance(first, ast.Name):
            values = self.bindings.get(first.id, [])
            first = values[0] if len(values) == 1 and values[0] is not None else first
        if isinstance(first, ast.List | ast.Tuple):
            self.findings.words.append([self.text(element) for element in first.elts])
        elif last == "create_subprocess_exec" or (len(node.args) > 1 and last.startswith(("exec", "spawn", "run"))):
            texts = [self.text(argument) for argument in node.args]
            self.findings.words.append(texts if last.startswith(("create", "run")) else texts[1:])
        elif first is not None and (text := self.text(first)) != UNKNOWN:
            self.findings.shells.append(text)

    def look_for_secret(self, node: ast.Call) -> None:
        sources = [*node.args[:1], self.receiver(node)]
        for source in sources:
            if source is not None and (secret := secret_in(self.text(source))):
                self.findings.reasons.append(("secret-exfiltration", f"the code reads {secret}"))
                return

    def look_at_code(self, source: ast.expr) -> None:
        for name in self.calls_in(source):
            if FETCHING.search(name) or DECODING.search(name):
                origin = "fetched over the network" if FETCHING.search(name) else "decoded from unreadable text"
                self.findings.reasons.append(("remote-code", f"the code runs text that was {origin}"))
                return

    def calls_in(self, source: ast.expr, depth: int = 0) -> Iterator[str]:
        """The names of calls that an expression is made of, also through names of this file."""
        for node in ast.walk(source):
            if isinstance(node, ast.Call):
                yield dotted_name(node.func).replace("()", "")
            if isinstance(node, ast.Name) and depth < 4:
                for value in self.bindings.get(node.id, []):
                    if value is not None and value is not source:
                        yield from self.calls_in(value, depth + 1)

    def look_at_sent(self, node: ast.Call) -> None:
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            if self.holds_environment(argument):
                self.findings.reasons.append(("secret-exfiltration", "the code sends the whole environment"))
                return
            if self.holds_env_file(argument):
                self.findings.reasons.append(("secret-exfiltration", "the code sends a .env file"))
                return

    def holds_environment(self, source: ast.expr, depth: int = 0) -> bool:
        for node in ast.walk(source):
            if isinstance(node, ast.Attribute) and dotted_name(node) == "os.environ":
                above = self.parents.get(node)
                taken = isinstance(above, ast.Attribute) and above.attr in ("get", "pop", "setdefault")
                if not taken and not (isinstance(above, ast.Subscript) and above.value is node):
                    return True
            if isinstance(node, ast.Name) and depth < 4:
                values = [
                    value for value in self.bindings.get(node.id, []) if value is not None and value is not source
                ]
                if any(self.holds_environment(value, depth + 1) for value in values):
                    return True
        return False

    def holds_env_file(self, source: ast.expr, depth: int = 0) -> bool:
        for node in ast.walk(source):
            if isinstance(node, ast.Call) and dotted_name(node.func).rsplit(".", 1)[-1] in READING:
                places = [*node.args[:1], self.receiver(node)]
                if any(place is not None and is_env_file(self.text(place)) for place in places):
                    return True
            if isinstance(node, ast.Name) and depth < 4:
                values = [
                    value for value in self.bindings.get(node.id, []) if value is not None and value is not source
                ]
                if any(self.holds_env_file(value, depth + 1) for value in values):
                    return True
        return False


def _constant(node: ast.expr) -> object:
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value
