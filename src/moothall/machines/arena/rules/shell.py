"""What a shell text would do, told without doing it: every command with its words as they would be expanded.

- Variables that the text sets are expanded; HOME is a home folder, PWD the workspace; any other is empty, for the
  sandbox's environment is clean. What a command prints is computed where that is plain (`echo`, `printf`, `pwd`,
  `base64 -d` of known text …), and unknown elsewhere.
- `sh -c`, `eval`, `xargs`, `find -exec` and prefixes such as `sudo` or `timeout` lead to further commands, which are
  told as well. A `cd` moves what follows; a subshell forgets it.
- A branch is left out only where its condition is plain (`[ -z "$X" ]` of a known text, `${X:?}` of an empty one);
  else all branches are taken.

The result is a `Trace`: commands, programs handed to other interpreters, files written with known text.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from moothall.machines.arena.rules.programs import (
    SHELLS,
    Inner,
    fetched_file,
    find_command,
    interpreter_program,
    printed_text,
    unwrap,
    xargs_command,
)
from moothall.machines.arena.rules.syntax import (
    Branches,
    Chain,
    Function,
    Group,
    Link,
    Literal,
    Loop,
    Node,
    Part,
    Pipeline,
    Redirection,
    Simple,
    Substitution,
    Variable,
    WordParts,
    read_shell,
)
from moothall.machines.arena.rules.texts import HOME, UNKNOWN, WORK, Text, constant, join, resolve, unknown

MOST_COMMANDS = 4_000
DEEPEST = 12
MOST_ROUNDS = 24
CODE = frozenset({"fetched", "decoded"})
STANDARD_INPUT = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
OUTWARD = (">", ">>", ">|", "&>", "&>>", ">&")


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it would be run: its words, input, where its output goes, and the folder it runs in.

    `runs` is the origin of code that it executes and that the text does not show. `writes` and `reads` are the files
    of its redirections.
    """

    words: tuple[Text, ...]
    folder: str = WORK
    input: Text | None = None
    settings: tuple[tuple[str, Text], ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    runs: frozenset[str] = frozenset()
    sends: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The command's name in small letters, without its folder."""
        return self.words[0].text.rsplit("/", 1)[-1].lower() if self.words else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words[1:])


@dataclass(slots=True)
class Trace:
    """All that a shell text would do, in order."""

    commands: list[Command] = field(default_factory=list)
    programs: list[tuple[str, Text]] = field(default_factory=list)
    written: list[tuple[str, Text]] = field(default_factory=list)
    bombs: list[str] = field(default_factory=list)
    made: set[str] = field(default_factory=set)


class _Exit(Exception):
    """The shell ends here."""


@dataclass(slots=True)
class Result:
    """What is left of a command: whether it succeeded, where that is plain, and what it printed."""

    status: bool | None = None
    output: Text = field(default_factory=Text)


def trace(text: str, *, is_script: bool = False, folder: str = WORK) -> Trace:
    """What a shell text would do. In a script the positional parameters are unknown, in a command they are empty."""
    shell = Shell(folder=folder)
    if is_script:
        shell.parameters = None
    shell.run_text(text)
    return shell.told


@dataclass(slots=True)
class Shell:
    """A shell that only pretends: its folder, variables, functions and files, and what it has told so far."""

    folder: str = WORK
    variables: dict[str, Text] = field(default_factory=dict)
    functions: dict[str, Node] = field(default_factory=dict)
    parameters: tuple[Text, ...] | None = ()
    files: dict[str, Text] = field(default_factory=dict)
    told: Trace = field(default_factory=Trace)
    depth: int = 0
    strict: bool = False
    called: set[str] = field(default_factory=set)
    traps: list[Text] = field(default_factory=list)
    stdin: Text | None = None

    def run_text(self, text: str, stdin: Text | None = None) -> Result:
        """Run a text to its end: functions that nobody called and traps come last."""
        if self.depth >= DEEPEST:
            return Result()
        result = self.guarded(read_shell(text), stdin)
        for name, body in list(self.functions.items()):
            if name not in self.called:
                self.called.add(name)
                inner = self.subshell()
                inner.parameters = None
                inner.guarded(Chain((Link("", Pipeline((body,))),)), None)
        while self.traps:
            self.guarded(read_shell(self.traps.pop().text), None)
        return result

    def guarded(self, chain: Chain, stdin: Text | None) -> Result:
        """Run a list whose end does not end the shell."""
        try:
            return self.run_chain(chain, stdin)
        except _Exit:
            return Result(None, Text())

    def subshell(self) -> Shell:
        """A copy that may change its folder and variables for itself; what it tells is told together."""
        return replace(
            self,
            variables=dict(self.variables),
            functions=dict(self.functions),
            traps=[],
            depth=self.depth + 1,
        )

    # ------------------------------------------------------------------ lists, pipelines, compound commands

    def run_chain(self, chain: Chain, stdin: Text | None) -> Result:
        result = Result(True)
        printed_so_far = Text()
        for link in chain.links:
            if (link.joint == "&&" and result.status is False) or (link.joint == "||" and result.status is True):
                continue
            doubtful = link.joint != "" and result.status is None
            try:
                result = self.run_pipeline(link.pipeline, stdin)
            except _Exit:
                if not doubtful and not link.background:
                    raise
                result = Result()
            printed_so_far = printed_so_far + result.output
            if doubtful:
                result = Result(None, result.output)
        return Result(result.status, printed_so_far)

    def run_pipeline(self, pipeline: Pipeline, stdin: Text | None) -> Result:
        result = Result()
        alone = len(pipeline.stages) == 1
        for stage in pipeline.stages:
            if alone:
                result = self.run_node(stage, stdin)
            else:
                inner = self.subshell()
                try:
                    result = inner.run_node(stage, stdin)
                except _Exit:
                    result = Result()
            stdin = result.output
        if pipeline.negated:
            result = Result(None if result.status is None else not result.status, result.output)
        return result if alone else Result(None, result.output)

    def run_node(self, node: Node, stdin: Text | None) -> Result:
        if self.depth >= DEEPEST or len(self.told.commands) >= MOST_COMMANDS:
            return Result()
        match node:
            case Simple():
                return self.run_simple(node, stdin)
            case Group(body=body, subshell=apart):
                given = self.opened(node.redirections, stdin)
                inner = self.subshell() if apart else self
                result = inner.guarded(body, given) if apart else inner.run_chain(body, given)
                return self.written(result, node.redirections)
            case Branches():
                given = self.opened(node.redirections, stdin)
                return self.written(self.run_branches(node, given), node.redirections)
            case Loop():
                given = self.opened(node.redirections, stdin)
                return self.written(self.run_loop(node, given), node.redirections)
            case Function(name=name, body=body):
                self.functions[name] = body
                if is_bomb(name, body):
                    self.told.bombs.append(name)
                    self.called.add(name)
                return Result(True)

    def run_branches(self, node: Branches, stdin: Text | None) -> Result:
        outputs = Text()
        for condition, body in node.cases:
            status = None if condition is None else self.run_chain(condition, stdin).status
            if status is False:
                continue
            if status is True:
                result = self.run_chain(body, stdin)
                return Result(result.status, outputs + result.output)
            outputs = outputs + self.guarded(body, stdin).output
        if all(condition is not None for condition, _ in node.cases):
            outputs = outputs + self.guarded(node.otherwise, stdin).output
        return Result(None, outputs)

    def run_loop(self, node: Loop, stdin: Text | None) -> Result:
        outputs = Text()
        if not node.variable:
            self.stdin = stdin
            self.guarded(node.condition, stdin)
            outputs = outputs + self.guarded(node.body, stdin).output
            self.stdin = None
            return Result(None, outputs)
        values: Iterable[Text] = (unknown(),) if node.values is None else self.fields(node.values)
        for value in list(values)[:MOST_ROUNDS]:
            self.variables[node.variable] = value
            outputs = outputs + self.guarded(node.body, stdin).output
        return Result(None, outputs)

    # ------------------------------------------------------------------ simple commands

    def run_simple(self, node: Simple, stdin: Text | None) -> Result:
        settings = tuple((name, self.joined(parts, assigned=True)) for name, parts in node.assignments)
        words = self.fields(node.words)
        reads, writes, given = self.redirected(node.redirections, stdin)
        if not words:
            for name, value in settings:
                self.variables[name] = value
            if node.redirections or settings:
                self.told.commands.append(
                    Command((constant(""),), self.folder, given, settings=settings, reads=reads, writes=writes)
                )
            output = self.file_text(reads[0]) if reads else Text()
            return self.written(Result(True, output), node.redirections)
        command = Command(tuple(words), self.folder, given, settings, reads, writes)
        return self.written(self.run_command(command), node.redirections)

    def run_command(self, command: Command) -> Result:
        """A command of which only the words count: a function, a builtin, a prefix or a program."""
        if len(self.told.commands) >= MOST_COMMANDS or self.depth >= DEEPEST or not command.words:
            return Result()
        name = command.words[0].text
        if name in self.functions and name not in self.told.bombs:
            self.called.add(name)
            inner = replace(self, depth=self.depth + 1, parameters=tuple(command.words[1:]))
            result = inner.run_node(self.functions[name], command.input)
            self.folder = inner.folder
            return result
        if (built_in := self.run_builtin(command)) is not None:
            return built_in
        inner_command = unwrap(command.words)
        if inner_command is not None:
            return self.run_inner(command, inner_command)
        return self.run_program(command)

    def run_inner(self, command: Command, inner: Inner) -> Result:
        """What a prefix leads to: words to run, or a text for a shell."""
        if inner.folder is not None:
            place = replace(self, folder=resolve(inner.folder.text, self.folder), depth=self.depth + 1)
        else:
            place = replace(self, depth=self.depth + 1)
        if inner.script is not None:
            sends = frozenset().union(
                *(word.tags for word in command.words), command.input.tags if command.input else ()
            )
            self.told.commands.append(replace(command, runs=inner.script.tags & CODE, sends=sends))
            apart = place.subshell()
            apart.variables.update(command.settings)
            apart.variables["0"] = inner.called or command.words[0]
            apart.parameters = inner.parameters
            return apart.run_text(inner.script.text, command.input)
        return place.run_command(replace(command, words=inner.words, settings=(*command.settings, *inner.settings)))

    def run_builtin(self, command: Command) -> Result | None:
        arguments = command.words[1:]
        match command.name:
            case "cd" | "pushd" | "chdir":
                return self.change_folder(command)
            case "exit" | "return" if "/" not in command.words[0].text:
                raise _Exit
            case "true" | ":":
                self.told.commands.append(command)
                return Result(True)
            case "false":
                return Result(False)
            case "eval":
                text = join(arguments)
                self.told.commands.append(replace(command, runs=text.tags & CODE))
                inner = replace(self, depth=self.depth + 1)
                result = inner.run_chain(read_shell(text.text), command.input) if inner.depth < DEEPEST else Result()
                self.folder = inner.folder
                return result
            case "source" | ".":
                return self.run_file(command, arguments[0]) if arguments else Result()
            case "trap":
                self.traps += arguments[:1]
                return Result(True)
            case "set":
                return self.set_options(command)
            case "export" | "declare" | "local" | "readonly" | "typeset":
                return self.declare(command)
            case "unset":
                for word in arguments:
                    self.variables.pop(word.text, None)
                return Result(True)
            case "read":
                return self.read_variables(command)
            case "test" | "[" | "[[":
                self.told.commands.append(command)
                return Result(test_result([word for word in arguments if word.text not in ("]", "]]")]))
        return None

    def change_folder(self, command: Command) -> Result:
        self.told.commands.append(command)
        targets = [word.text for word in command.words[1:] if not word.text.startswith("-")]
        back = any(word.text == "-" for word in command.words[1:])
        if back:
            self.folder = UNKNOWN
        else:
            self.folder = resolve(targets[0], self.folder) if targets and targets[0] else HOME
            if targets and not targets[0]:
                self.folder = command.folder
        return Result(None)

    def set_options(self, command: Command) -> Result:
        self.told.commands.append(command)
        arguments = command.arguments
        flags = "".join(word[1:] for word in arguments if re.fullmatch(r"-[a-zA-Z]+", word))
        self.strict = self.strict or "u" in flags or "nounset" in arguments
        if "--" in arguments:
            self.parameters = command.words[arguments.index("--") + 2 :]
        if not arguments:
            return Result(True, unknown({"environment"}))
        return Result(True)

    def declare(self, command: Command) -> Result:
        self.told.commands.append(command)
        plain = [word for word in command.words[1:] if not word.text.startswith("-")]
        for word in plain:
            name, equals, value = word.text.partition("=")
            if equals:
                shape = word.shape.partition("=")[2]
                value = HOME + value[1:] if re.match(r"~(/|$)", value) else value
                self.variables[name] = Text(value, shape, word.tags)
        return Result(True) if plain else Result(True, unknown({"environment"}))

    def read_variables(self, command: Command) -> Result:
        source = command.input or self.stdin
        names = [word.text for word in command.words[1:] if not word.text.startswith("-")]
        line = source.text.split("\n")[0] if source else UNKNOWN
        for number, name in enumerate(names):
            value = line if number == 0 and len(names) == 1 else UNKNOWN
            self.variables[name] = Text(value, value, source.tags if source else frozenset())
        return Result(None)

    def run_file(self, command: Command, path: Text) -> Result:
        """A file that is read and run by a shell: what is in it counts where the same text wrote it."""
        content = self.content_of(path) if path.text not in STANDARD_INPUT else command.input
        tags = path.tags | (content.tags if content else frozenset())
        self.told.commands.append(replace(command, runs=tags & CODE))
        if content is not None and content.is_known():
            return replace(self.subshell(), parameters=None).run_text(content.text, command.input)
        return Result()

    def content_of(self, path: Text) -> Text | None:
        return self.files.get(resolve(path.text, self.folder)) if path.text else None

    def run_program(self, command: Command) -> Result:
        """A program: whatever it runs in turn, then what it prints."""
        if command.name in ("xargs", "parallel"):
            return self.run_each(command, xargs_command(command.words, command.input))
        if command.name == "find":
            self.told.commands.append(command)
            output = join((Text(f"{start.text.rstrip('/')}/{UNKNOWN}") for start in _starts(command)), "\n")
            for inner in find_command(command.words):
                output = output + replace(self, depth=self.depth + 1).run_command(replace(command, words=inner)).output
            return Result(None, replace(output, shape=output.text))
        program = interpreter_program(command.words, command.input)
        if program is None:
            return self.run_plain(command)
        language, code, path = program
        content = self.content_of(path) if path is not None else None
        if path is not None and path.text in STANDARD_INPUT:
            content = command.input
        tags = (path.tags if path else frozenset()) | (code.tags if code else frozenset())
        tags |= content.tags if content else frozenset()
        self.told.commands.append(replace(command, runs=tags & CODE))
        code = code or content
        if code is None or not code.text.strip(UNKNOWN + " \n"):
            return Result(None, unknown())
        if language in SHELLS:
            apart = replace(self.subshell(), parameters=())
            apart.variables.update(command.settings)
            return apart.run_text(code.text, command.input)
        self.told.programs.append((language, code))
        return Result(None, unknown())

    def run_each(self, command: Command, lists: Sequence[tuple[Text, ...]]) -> Result:
        self.told.commands.append(replace(command, words=(command.words[0],)))
        outputs = Text()
        for words in lists[:MOST_ROUNDS]:
            inner = replace(self, depth=self.depth + 1)
            outputs = outputs + inner.run_command(replace(command, words=words, input=None)).output
        return Result(None, outputs)

    def run_plain(self, command: Command) -> Result:
        name = command.words[0].text
        content = self.content_of(command.words[0]) if "/" in name else None
        sends = frozenset().union(
            *(self.sent_tags(word) for word in command.words[1:]), *map(self.tags_in, command.reads)
        )
        sends |= command.input.tags if command.input else frozenset()
        runs = (command.words[0].tags | (content.tags if content else frozenset())) & CODE
        self.told.commands.append(replace(command, runs=runs, sends=sends))
        if content is not None and content.is_known():
            replace(self.subshell(), parameters=None).run_text(content.text, command.input)
        self.keep_files(command)
        return Result(None, printed_text(command.words, command.input, self.file_text, self.folder))

    def sent_tags(self, word: Text) -> frozenset[str]:
        """The origin of a word, and of the file that it names, bare or behind an `@` or `=`."""
        tags = word.tags
        for path in re.split(r"[@=<]", word.text):
            tags |= self.tags_in(resolve(path, self.folder)) if path else frozenset()
        return tags

    def tags_in(self, path: str) -> frozenset[str]:
        return self.file_text(path).tags

    def file_text(self, path: str) -> Text:
        """What a file holds, as far as that is known."""
        path = resolve(path, self.folder)
        if path in self.files:
            return self.files[path]
        if re.fullmatch(r"/proc/(?:self|\d+|\$\$)/environ", path):
            return unknown({"environment"})
        if is_env_file(path):
            return unknown({"envfile"})
        return unknown()

    def keep_files(self, command: Command) -> None:
        """Files that a program makes: fetched, copied, moved, split off from a pipe, or brought by a clone."""
        plain = [word for word in command.words[1:] if not word.text.startswith("-")]
        for path in fetched_file(command.words):
            self.files[resolve(path, self.folder)] = unknown({"fetched"})
        if command.name == "tee" and command.input is not None:
            for word in plain:
                self.write(resolve(word.text, self.folder), command.input, appended="-a" in command.arguments)
        if command.name in ("cp", "mv", "install", "ln") and len(plain) >= 2:
            content = self.file_text(plain[-2].text)
            if content.tags or content.is_known():
                self.files[resolve(plain[-1].text, self.folder)] = content
        if command.name == "git" and plain and plain[0].text == "clone" and len(plain) > 1:
            texts = [word.text for word in plain]
            source = next((at for at, text in enumerate(texts) if re.search(r"[:/]", text)), 1)
            target = (
                texts[source + 1] if texts[source + 1 :] else re.sub(r"\.git/?$", "", texts[source]).rsplit("/", 1)[-1]
            )
            self.told.made.add(resolve(target, self.folder))
        if command.name in ("base64", "openssl", "xxd") and "-out" in command.arguments:
            position = command.arguments.index("-out") + 2
            for word in command.words[position : position + 1]:
                self.files[resolve(word.text, self.folder)] = unknown({"decoded"})

    # ------------------------------------------------------------------ redirections

    def redirected(
        self, redirections: Sequence[Redirection], stdin: Text | None
    ) -> tuple[tuple[str, ...], tuple[str, ...], Text | None]:
        """Files read, files written, and the input that is left after all redirections."""
        reads: list[str] = []
        writes: list[str] = []
        for redirection in redirections:
            match redirection.operator:
                case "<<" | "<<-":
                    stdin = self.joined(redirection.body or ())
                case "<<<":
                    stdin = self.joined(redirection.word) + constant("\n")
                case "<" | "<>":
                    word = self.joined(redirection.word)
                    path = resolve(word.text, self.folder)
                    reads.append(path)
                    stdin = replace(self.file_text(path), tags=self.file_text(path).tags | word.tags)
                    if redirection.operator == "<>":
                        writes.append(path)
                case "<&":
                    pass
                case _:
                    target = self.joined(redirection.word).text
                    if not re.fullmatch(r"\d+|-", target):
                        writes.append(resolve(target, self.folder))
        return tuple(reads), tuple(writes), stdin

    def opened(self, redirections: Sequence[Redirection], stdin: Text | None) -> Text | None:
        """The input of a compound command, its files told as those of a command without a name."""
        reads, writes, given = self.redirected(redirections, stdin)
        if reads or writes:
            self.told.commands.append(Command((constant(""),), self.folder, given, reads=reads, writes=writes))
        return given

    def written(self, result: Result, redirections: Sequence[Redirection]) -> Result:
        """The result after its output went to files, if it did."""
        taken = False
        for redirection in redirections:
            if redirection.descriptor in ("", "1") and redirection.operator in OUTWARD:
                target = self.joined(redirection.word).text
                if re.fullmatch(r"\d+|-", target):
                    continue
                taken = True
                self.write(resolve(target, self.folder), result.output, appended=">>" in redirection.operator)
        return Result(result.status, Text()) if taken else result

    def write(self, path: str, content: Text, *, appended: bool) -> None:
        before = self.files.get(path, Text()) if appended else Text()
        self.files[path] = before + content
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            self.told.commands.append(Command((constant(""),), self.folder, writes=(path,), sends=content.tags))
        if content.text and content.text != UNKNOWN:
            self.told.written.append((path, self.files[path]))

    # ------------------------------------------------------------------ expansion

    def fields(self, words: Iterable[WordParts]) -> list[Text]:
        """Words as a command gets them: braces, variables and substitutions expanded, then split at blanks."""
        return [
            field_text for word in words for variant in expand_braces(word) for field_text in self.split_word(variant)
        ]

    def split_word(self, word: WordParts) -> list[Text]:
        ready: list[Text] = []
        current: Text | None = None
        for number, part in enumerate(word):
            if isinstance(part, Variable) and part.name in ("@", "*") and not part.operation and self.parameters:
                first, *others = self.parameters
                current = (current or Text()) + first
                for parameter in others:
                    ready.append(current)
                    current = parameter
                continue
            value = self.part_value(part, first=number == 0)
            if isinstance(part, Literal) or part.quoted or (isinstance(part, Substitution) and part.as_file):
                current = (current or Text()) + value
                continue
            pieces = _split_blanks(value)
            for position, piece in enumerate(pieces):
                if position and current is not None:
                    ready.append(current)
                    current = None
                if piece.text or piece.shape or piece.tags:
                    current = (current or Text()) + piece
        if current is not None:
            ready.append(current)
        return ready

    def joined(self, word: Sequence[Part], *, assigned: bool = False) -> Text:
        """A word as one text, not split: an assignment's value, a redirection's file, quoted text."""
        value = Text()
        for number, part in enumerate(word):
            value = value + self.part_value(part, first=number == 0 or assigned)
        return value

    def part_value(self, part: Part, *, first: bool) -> Text:
        match part:
            case Literal(text=text, quoted=quoted):
                if first and not quoted and text.startswith("~"):
                    name, slash, rest = text.partition("/")
                    return constant((WORK if name == "~+" else HOME) + slash + rest)
                return constant(text)
            case Substitution(body=body):
                inner = self.subshell()
                if inner.depth >= DEEPEST:
                    return unknown()
                output = inner.guarded(body, None).output
                return replace(output, text=output.text.rstrip("\n"), shape=output.shape.rstrip("\n"))
            case Variable():
                return self.variable_value(part)

    def variable_value(self, part: Variable) -> Text:
        value = self.lookup(part.name)
        operation = part.operation
        if operation == "indirect" and value is not None:
            value = self.lookup(value.text)
        if operation in (":?", "?"):
            if value is None or (operation == ":?" and not value.text):
                raise _Exit
            return value
        if operation in (":-", "-", ":=", "="):
            if value is None or (operation[0] == ":" and not value.text):
                value = self.joined(part.argument, assigned=True)
                if "=" in operation:
                    self.variables[part.name] = value
            return value
        if operation in (":+", "+"):
            return self.joined(part.argument) if value is not None and value.text else Text()
        if value is None:
            if self.strict and not part.name.isdigit():
                raise _Exit
            return Text("", UNKNOWN)
        if operation == "length":
            return unknown()
        return _substitute(value, operation, self.joined(part.argument)) if operation else value

    def lookup(self, name: str) -> Text | None:
        """The value of a variable; None where nobody set it."""
        if name in self.variables:
            return self.variables[name]
        match name:
            case "HOME":
                return constant(HOME)
            case "PWD":
                return constant(self.folder)
            case "IFS":
                return constant(" \t\n")
            case "((" | "?" | "$" | "!" | "-" | "#" | "RANDOM" | "SECONDS" | "LINENO" | "UID" | "EUID" | "PPID":
                return unknown()
            case "0" | "BASH_SOURCE" | "HOSTNAME":
                return unknown()
            case "@" | "*":
                return unknown() if self.parameters is None else join(self.parameters)
        if name.isdigit():
            if self.parameters is None:
                return unknown()
            return self.parameters[int(name) - 1] if int(name) <= len(self.parameters) else None
        return None


def is_bomb(name: str, body: Node) -> bool:
    """Whether a function starts itself twice at once, or without waiting for it."""
    return any(
        sum(_calls(stage, name) for stage in link.pipeline.stages) >= (1 if link.background else 2)
        and (link.background or len(link.pipeline.stages) > 1)
        for chain in _chains(body)
        for link in chain.links
    )


def _calls(node: Node, name: str) -> int:
    if isinstance(node, Simple):
        return int(bool(node.words) and node.words[0] == (Literal(name),))
    return sum(_calls(stage, name) for chain in _chains(node) for link in chain.links for stage in link.pipeline.stages)


def _chains(node: Node) -> list[Chain]:
    match node:
        case Group(body=body) | Loop(body=body):
            direct = [body]
        case Branches(cases=cases, otherwise=otherwise):
            direct = [*(body for _, body in cases), otherwise]
        case _:
            return []
    nested = [
        inner
        for chain in direct
        for link in chain.links
        for stage in link.pipeline.stages
        if not isinstance(stage, Function)
        for inner in _chains(stage)
    ]
    return [*direct, *nested]


def is_env_file(path: str) -> bool:
    """Whether a file holds settings with secrets: `.env` and its siblings, but no example of one."""
    name = path.rsplit("/", 1)[-1]
    return bool(re.fullmatch(r"\.env(?:\.\w+)*", name)) and not re.search(
        r"example|sample|template|dist|defaults?|schema", name
    )


def test_result(words: Sequence[Text]) -> bool | None:
    """What `test` says of known texts; None where that depends on more."""
    if any(not word.is_known() for word in words):
        return None
    match [word.text for word in words]:
        case ["!", *rest]:
            inner = test_result([constant(word) for word in rest])
            return None if inner is None else not inner
        case ["-n", text]:
            return text != ""
        case ["-z", text]:
            return text == ""
        case [text]:
            return text != ""
        case [left, "=" | "==", right] if not re.search(r"[*?\[]", right):
            return left == right
        case [left, "!=", right] if not re.search(r"[*?\[]", right):
            return left != right
    return None


def _starts(command: Command) -> list[Text]:
    """Where a `find` begins to look."""
    starts: list[Text] = []
    for word in command.words[1:]:
        if word.text in ("-H", "-L", "-P"):
            continue
        if word.text.startswith(("-", "(", "!")):
            break
        starts.append(word)
    return starts or [constant(".")]


def expand_braces(word: WordParts) -> list[WordParts]:
    """The words that `{a,b}` and `{1..3}` in a word stand for."""
    for number, part in enumerate(word):
        if not isinstance(part, Literal) or part.quoted:
            continue
        match = re.search(r"\{([^{}]*,[^{}]*|(-?\d{1,3})\.\.(-?\d{1,3}))\}", part.text)
        if match is None:
            continue
        if match.group(2) is not None:
            low, high = sorted((int(match.group(2)), int(match.group(3))))
            inner = [str(value) for value in range(low, min(high, low + MOST_ROUNDS) + 1)]
        else:
            inner = match.group(1).split(",")
        before, behind = part.text[: match.start()], part.text[match.end() :]
        words: list[WordParts] = []
        for text in inner[:MOST_ROUNDS]:
            variant = (*word[:number], Literal(before + text + behind), *word[number + 1 :])
            words += expand_braces(variant)
        return words[:200]
    return [word]


def _split_blanks(value: Text) -> list[Text]:
    """An unquoted value, split where it has blanks; a part that is empty only divides."""
    if not re.search(r"[ \t\n]", value.text):
        return [value]
    pieces = re.split(r"[ \t\n]+", value.text)
    shapes = re.split(r"[ \t\n]+", value.shape)
    same = len(pieces) == len(shapes)
    return [
        Text(piece, shapes[number] if same else piece, value.tags if piece else frozenset())
        for number, piece in enumerate(pieces)
    ]


def _substitute(value: Text, operation: str, argument: Text) -> Text:
    """`${name#pattern}` and its like."""
    text = value.text
    if operation in ("^^", "^"):
        return replace(value, text=text.upper() if operation == "^^" else text[:1].upper() + text[1:])
    if operation in (",,", ","):
        return replace(value, text=text.lower() if operation == ",," else text[:1].lower() + text[1:])
    if operation in ("%", "%%", "#", "##"):
        if text in (WORK, HOME) and operation == "%" and argument.text == "/*":
            return replace(value, text=f"{text}/..")
        return replace(value, text=_without(text, operation, argument.text))
    if operation in ("/", "//"):
        pattern, _, instead = argument.text.partition("/")
        found = re.compile(fnmatch.translate(pattern).removesuffix(r"\Z").removesuffix(r"\z") if pattern else r"(?!)")
        return replace(value, text=found.sub(lambda _: instead, text, count=0 if operation == "//" else 1))
    match = re.fullmatch(r"\s*(\d+)(?::(\d+))?", argument.text)
    if operation == ":" and match:
        start = int(match.group(1))
        return replace(value, text=text[start : start + int(match.group(2))] if match.group(2) else text[start:])
    return Text(UNKNOWN, UNKNOWN, value.tags)


def _without(text: str, operation: str, pattern: str) -> str:
    """A text without the longest or shortest beginning or end that fits a pattern."""
    cuts = range(len(text) + 1)
    ordered = cuts if operation in ("#", "%%") else reversed(cuts)
    for cut in ordered:
        part, rest = (text[:cut], text[cut:]) if operation[0] == "#" else (text[cut:], text[:cut])
        if fnmatch.fnmatchcase(part, pattern):
            return rest
    return text
