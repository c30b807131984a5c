"""Programs in other languages as the rules see them: strings, names and signs, with comments left out.

No grammar is known here, only how strings and comments are written and what puts strings together. Holes stand for
what is put in; a name that the same text sets to nothing but one literal is that literal. What is printed, logged or
thrown is only mentioned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from moothall.machines.arena.figures import names
from moothall.machines.arena.rules.containers import ROOT_CAPABILITIES, SOCKET
from moothall.machines.arena.rules.secrets import secret_in
from moothall.machines.arena.rules.shell import is_env_file
from moothall.machines.arena.rules.sql import is_built, is_sql
from moothall.machines.arena.rules.texts import HOME, UNKNOWN

HASH_COMMENTS = names("ruby php perl r hcl python powershell elixir toml")
DASH_COMMENTS = frozenset({"lua", "sql", "haskell"})
BACKTICK_SHELLS = frozenset({"ruby", "perl", "php"})
INTERPOLATED = {
    "ruby": r"#\{([^{}]*)\}",
    "elixir": r"#\{([^{}]*)\}",
    "php": r"\{\$([^{}]*)\}|\$(\w+(?:->\w+|\[[^\]]*\])?)",
    "perl": r"\$\{?(\w+)\}?|@\{?(\w+)\}?",
    "kotlin": r"\$\{([^{}]*)\}|\$(\w+)",
    "groovy": r"\$\{([^{}]*)\}|\$(\w+)",
    "dart": r"\$\{([^{}]*)\}|\$(\w+)",
    "hcl": r"\$\{([^{}]*)\}",
    "powershell": r"\$\(([^()]*)\)|\$\{?(\w+)\}?",
    "swift": r"\\\(([^()]*)\)",
}
TOKEN = re.compile(r"[A-Za-z_$@][\w$]*!?|\d[\w.]*|\+=|\.=|=>|->|::|:=|==|!=|<=|>=|\.\.|[^\s\w]")
SHELL_CALLS = names(
    "exec execSync execFile execFileSync spawn spawnSync system popen shell_exec passthru proc_open Command execa"
    " execaSync execaCommand execaCommandSync ProcessBuilder Start capture2 capture2e capture3 sh bat shelljs"
)
READING = names(
    "readFile readFileSync createReadStream ReadFile Open read open fopen file_get_contents FileReader FileInputStream"
    " readAllBytes readString readAllLines read_to_string ReadAllText ReadAllBytes File readlines copyFileSync cat"
    " readTextFile readText"
)
SENDING = names("fetch post put request Post PostForm send sendBeacon NewRequest write axios got execute")
FETCHING = names("fetch axios get Get http https got needle urlopen request file_get_contents open")
SAYING = re.compile(
    r"(?:console|log|logger|logging|slog|Log|LOG)$|^(?:log|print|println|Print|Println|Printf|Fprintf|puts|echo|warn|info|debug"
    r"|eprintln!|println!|print!|Errorf|Error|error|panic!?|Fatal|Fatalf|WriteLine|describe|it|test|alert)$"
    r"|(?:Error|Exception)$"
)
FORMATTING = names("Sprintf sprintf format Format format! formatted printf_s String_format vsprintf")
SLOT = re.compile(r"\{[^{}]*\}|%(?:\d\$)?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]")
BOMB = re.compile(r"while\s*\(\s*(?:1|true)\s*\)\s*\{?\s*fork\s*\(\s*\)|\bfork\s+while\s+fork\b|\bloop\s*\{\s*fork")


@dataclass(frozen=True, slots=True)
class Token:
    """A string with holes (`is_text`), or a name or sign; `calls` are the calls whose brackets it stands in."""

    value: str
    is_text: bool = False
    calls: tuple[str, ...] = ()
    tag: str = ""
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class CodeFindings:
    """What a program would do that rules ask about."""

    shells: list[str] = field(default_factory=list)
    words: list[list[str]] = field(default_factory=list)
    reasons: list[tuple[str, str]] = field(default_factory=list)


def read_code(text: str, language: str) -> CodeFindings:
    """What a program in some language would do."""
    tokens = list(_with_calls(_tokens(text, language)))
    reader = _Program(tokens, language)
    reader.look()
    if BOMB.search(_without_comments(text, language)):
        reader.findings.reasons.append(("destructive-shell", "a loop forks without end: a fork bomb"))
    return reader.findings


def _without_comments(text: str, language: str) -> str:
    text = re.sub(r"/\*.*?\*/|(?m:(?<![:\w])//.*$)", " ", text, flags=re.S)
    return re.sub(r"(?m)(?:^|\s)#.*$", " ", text) if language in HASH_COMMENTS else text


def _tokens(text: str, language: str) -> Iterator[Token]:
    at = 0
    before = ""
    while at < len(text):
        sign = text[at]
        end = _comment_end(text, at, language)
        if end > at:
            at = end
            continue
        if sign in " \t\r\n":
            at += 1
            before = "" if sign != "\n" else "\n"
            if sign == "\n":
                yield Token("\n")
            continue
        if sign in "\"'`":
            token, at = _string(text, at, language, before)
            yield token
            before = ""
            continue
        match = TOKEN.match(text, at)
        if match is None:
            at += 1
            continue
        at = match.end()
        before = match.group()
        yield Token(before)


def _comment_end(text: str, at: int, language: str) -> int:
    line = text.find("\n", at)
    line = len(text) if line < 0 else line
    if text.startswith("/*", at) and language not in ("python", "ruby", "perl", "lua"):
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    if text.startswith("//", at) and language not in ("python", "ruby", "perl", "lua", "r"):
        return line
    if text[at] == "#" and language in HASH_COMMENTS and not (language == "php" and text.startswith("#[", at)):
        return line
    if text.startswith("--", at) and language in DASH_COMMENTS:
        return line
    return at


def _string(text: str, at: int, language: str, before: str) -> tuple[Token, int]:
    quote = text[at]
    triple = text.startswith(quote * 3, at) and quote != "`"
    mark = quote * 3 if triple else quote
    start = at + len(mark)
    end = start
    while end < len(text) and not text.startswith(mark, end):
        if text[end] == "\n" and quote != "`" and not triple and language not in ("php", "ruby", "perl"):
            break  # no string: an apostrophe in a text, or a lifetime
        if quote == "`" and language == "javascript" and text.startswith("${", end):
            end = _brace_end(text, end + 2)
            continue
        end += 2 if text[end] == "\\" and not (quote == "`" and language == "go") else 1
    raw = text[start:end]
    value, names = _interpolate(raw, quote, language, before)
    tag = before if quote == "`" and before and (before[-1].isalnum() or before[-1] in "_$)]>") else ""
    if quote == "`" and language in BACKTICK_SHELLS:
        tag = "$"
    return Token(value, True, tag=tag, names=names), min(len(text), end + len(mark))


def _brace_end(text: str, at: int) -> int:
    depth = 1
    while at < len(text) and depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def _interpolate(raw: str, quote: str, language: str, before: str) -> tuple[str, tuple[str, ...]]:
    """A string with its named holes written as the unknown sign and the name between two of them."""
    pattern = ""
    if quote == "`" and language == "javascript":
        pattern = r"\$\{((?:[^{}]|\{[^{}]*\})*)\}"
    elif quote == '"' and language in INTERPOLATED:
        pattern = INTERPOLATED[language]
    elif quote == '"' and before.endswith("$") and language == "csharp":
        pattern = r"\{([^{}]*)\}"
    elif quote == '"' and before in ("s", "f") and language == "scala":
        pattern = r"\$\{([^{}]*)\}|\$(\w+)"
    elif before.lower() in ("f", "rf", "fr") and language == "python":
        pattern = r"\{([^{}]*)\}"
    if not pattern:
        return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), raw), ()
    names: list[str] = []

    def hole(match: re.Match[str]) -> str:
        names.append(next((group for group in match.groups() if group), "").strip())
        return UNKNOWN

    return re.sub(pattern, hole, raw), tuple(names)


def _with_calls(tokens: Iterator[Token]) -> Iterator[Token]:
    stack: list[str] = []
    last = ""
    dotted = ""
    for token in tokens:
        yield Token(token.value, token.is_text, tuple(name for name in stack if name), token.tag, token.names)
        if token.is_text:
            last = dotted = ""
        elif token.value in "([{":
            stack.append(dotted if token.value == "(" else "")
            last = dotted = ""
        elif token.value in ")]}":
            if stack:
                stack.pop()
            last = ""
            dotted = "()" if token.value == ")" else ""
        elif re.match(r"[A-Za-z_$@]", token.value):
            dotted = f"{dotted}.{token.value}" if last in (".", "::", "->") and dotted else token.value
            last = token.value
        elif token.value in (".", "::", "->", "!"):
            last = token.value
        elif token.value != "\n":
            last = dotted = ""


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]


class _Program:
    def __init__(self, tokens: list[Token], language: str) -> None:
        self.language = language
        self.tokens = [token for token in tokens if token.value != "\n" or token.is_text]
        self.findings = CodeFindings()
        self.plus = {"php": ".", "lua": "..", "perl": ".", "elixir": "<>"}.get(language, "+")
        self.texts: dict[str, list[str]] = {}
        self.loose: set[str] = set()
        self.sources: dict[str, set[str]] = {}
        self.bind()

    def at(self, position: int) -> Token:
        return self.tokens[position] if 0 <= position < len(self.tokens) else Token("")

    def bind(self) -> None:
        """Which names are set to a literal and nothing else, and which calls the value of a name is made of."""
        for position, token in enumerate(self.tokens):
            if token.is_text or not re.match(r"[A-Za-z_$@]", token.value):
                continue
            following = self.at(position + 1).value
            start = position + 2
            if following == ":" and self.at(position + 3).value == "=" and not self.at(position + 1).is_text:
                start = position + 4
            elif following not in ("=", ":=", "+=", ".="):
                continue
            name = token.value
            text, end, made_of = self.operand_chain(start)
            self.sources.setdefault(name, set()).update(made_of)
            if following in ("+=", ".="):
                self.loose.add(name)
            elif UNKNOWN in text or not text or self.at(end).value in ("(", ".", "?"):
                self.loose.add(name)
                self.texts.setdefault(name, []).append(text)
            else:
                self.texts.setdefault(name, []).append(text)

    def constant(self, name: str) -> str | None:
        values = self.texts.get(name, [])
        return values[0] if len(values) == 1 and name not in self.loose else None

    def value(self, token: Token) -> str:
        """A string with those holes filled whose names are constants."""
        pieces = token.value.split(UNKNOWN)
        if len(pieces) != len(token.names) + 1:
            return token.value
        text = pieces[0]
        for name, piece in zip(token.names, pieces[1:], strict=True):
            known = self.constant(name.lstrip("$"))
            text += (UNKNOWN if known is None else known) + piece
        return text

    def operand_chain(self, position: int) -> tuple[str, int, set[str]]:
        """The text of operands joined by the language's sign for joining, where it ends, and the names in it."""
        text = ""
        made_of: set[str] = set()
        while True:
            while self.at(position).value == "(" and not self.at(position).is_text and self.at(position + 1).is_text:
                position += 1
            token = self.at(position)
            if token.is_text:
                text += UNKNOWN if token.tag else self.value(token)
                position += 1
            elif re.match(r"[A-Za-z_$@0-9(]", token.value):
                end = self.skip_operand(position)
                inside = self.tokens[position:end]
                made_of |= {part.value for part in inside if not part.is_text}
                known = self.constant(token.value.lstrip("$")) if end == position + 1 else None
                number = token.value if end == position + 1 and token.value[0].isdigit() else None
                text += known if known is not None else number if number is not None else UNKNOWN
                position = end
            else:
                return text, position, made_of
            while self.at(position).value == ")" and self.at(position + 1).value == self.plus:
                position += 1
            if self.at(position).value != self.plus or self.at(position).is_text:
                return text, position, made_of
            position += 1

    def skip_operand(self, position: int) -> int:
        """Behind a name with its members, calls and indices."""
        if self.at(position).value in ("new", "await", "typeof", "&", "*"):
            position += 1
        position = self.skip_brackets(position) if self.at(position).value == "(" else position + 1
        while not self.at(position).is_text:
            sign = self.at(position).value
            if sign in ("(", "["):
                position = self.skip_brackets(position)
            elif (
                sign in (".", "::", "->", "?")
                and self.plus != sign
                and re.match(r"[\w.$(]", self.at(position + 1).value)
            ):
                position += 2
            else:
                return position
        return position

    def skip_brackets(self, position: int) -> int:
        depth = 0
        while position < len(self.tokens):
            token = self.tokens[position]
            if not token.is_text:
                depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.value, 0)
            position += 1
            if depth <= 0:
                return position
        return position

    def is_said(self, token: Token) -> bool:
        return any(
            SAYING.search(part) for name in token.calls for part in (_last(name), name.split(".")[0]) if part
        ) and not any(
            _last(name) in ("Sprintf", "query", "execute", "exec", "Exec", "Query") for name in token.calls[-1:]
        )

    def look(self) -> None:
        for position, token in enumerate(self.tokens):
            if token.is_text:
                self.look_at_text(position, token)
            elif re.match(r"[A-Za-z_$]", token.value):
                self.look_at_name(position, token)

    def look_at_text(self, position: int, token: Token) -> None:
        if SOCKET.search(token.value) and not self.is_said(token):
            self.findings.reasons.append(("docker-socket", "the code names a container engine's socket"))
        if token.tag == "$":
            self.findings.shells.append(self.value(token))
        if self.language == "groovy" and self.at(position - 1).value in ("sh", "bat"):
            self.findings.shells.append(self.value(token))
        if not token.tag and not self.is_said(token) and self.at(position - 1).value != self.plus:
            self.look_for_sql(position, "")

    def look_for_sql(self, position: int, start: str) -> None:
        text, end, _ = self.operand_chain(position)
        text = start + text
        following = self.at(end).value
        if following == "." and self.at(end + 1).value in ("format", "formatted") and not self.only_literals(end + 2):
            text = SLOT.sub(UNKNOWN, text)
        elif following == "%" and self.language in ("ruby", "python"):
            text = re.sub(r"%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]|%\{\w+\}", UNKNOWN, text)
        elif (
            following == ","
            and any(_last(name) in FORMATTING for name in self.at(position).calls[-1:])
            and not self.only_literals(end, bare=True)
        ):
            text = SLOT.sub(UNKNOWN, text)
        elif self.language == "rust" and any(_last(name) in FORMATTING for name in self.at(position).calls[-1:]):
            text = re.sub(r"\{\w[^{}]*\}", UNKNOWN, text)
        if is_built(text) or (start and UNKNOWN in text[len(start) :] and is_sql(start)):
            reason = "the code puts SQL together from variables; bind parameters instead"
            self.findings.reasons.append(("string-built-sql", reason))

    def only_literals(self, position: int, *, bare: bool = False) -> bool:
        """Whether the arguments from here to the closing bracket are all literals or constants."""
        depth = 1 if bare else 0
        while position < len(self.tokens):
            token = self.tokens[position]
            if not token.is_text:
                depth += {"(": 1, ")": -1}.get(token.value, 0)
                if depth <= 0:
                    return True
                if re.match(r"[A-Za-z_$]", token.value) and self.constant(token.value.lstrip("$")) is None:
                    return False
            elif UNKNOWN in self.value(token):
                return False
            position += 1
        return True

    def look_at_name(self, position: int, token: Token) -> None:
        name, following = token.value, self.at(position + 1).value
        plain = name.lstrip("$")
        known = next(
            (
                text
                for text in self.texts.get(plain, self.texts.get(name, []))
                if is_sql(SLOT.sub(UNKNOWN, text)) or is_sql(text + UNKNOWN)
            ),
            "",
        )
        if known and following in ("+=", ".="):
            self.look_for_sql(position + 2, known + " ")
        elif known and following in (self.plus, ".") and self.at(position - 1).value not in (".", self.plus):
            self.look_for_sql(position, "")
            if following == "." and self.at(position + 2).value in ("format", "formatted"):
                self.look_for_format(position, known)
        elif known and following == "," and any(_last(call) in FORMATTING for call in token.calls[-1:]):
            self.look_for_format(position, known)
        if following == "(" or (following == "!" and self.at(position + 2).value == "("):
            self.look_at_call(position, name)
        if following in (":", "=", ":=") or self.at(position - 1).is_text:
            self.look_at_setting(position, plain)

    def look_for_format(self, position: int, known: str) -> None:
        holes = SLOT.sub(UNKNOWN, known)
        if is_built(holes) and not self.is_said(self.tokens[position]):
            reason = "the code puts SQL together from variables; bind parameters instead"
            self.findings.reasons.append(("string-built-sql", reason))

    def look_at_setting(self, position: int, name: str) -> None:
        value = self.at(position + 2)
        plain = name.replace("_", "").lower()
        if plain in ("privileged", "hostpid") and value.value in ("true", "True"):
            self.findings.reasons.append(("privileged-container", f"{name} gives a container the whole host"))
        elif plain in ("pidmode", "pid") and value.is_text and value.value == "host":
            self.findings.reasons.append(("privileged-container", f"{name} shows a container the host's processes"))
        elif plain == "capadd":
            end = next((at for at in range(position, len(self.tokens)) if self.at(at).value in ("]", "}")), position)
            names = [token.value.upper().removeprefix("CAP_") for token in self.tokens[position:end] if token.is_text]
            if set(names) & set(ROOT_CAPABILITIES):
                self.findings.reasons.append(("privileged-container", f"{name} gives a container every capability"))

    def look_at_call(self, position: int, name: str) -> None:
        start = position + (2 if self.at(position + 1).value == "!" else 1)
        end = self.skip_brackets(start)
        inside = self.tokens[start:end]
        texts = [self.value(token) for token in inside if token.is_text]
        names = {token.value for token in inside if not token.is_text}
        names |= {word for token in inside for name in token.names for word in re.findall(r"\w+", name)}
        for known in list(names):
            names |= self.sources.get(known, set())
            if (text := self.constant(known)) is not None:
                texts.append(text)
        member = self.at(position - 1).value in (".", "::", "->")
        if name in SHELL_CALLS or (name == "new" and self.at(position - 2).value == "Command"):
            while self.at(end).value == "." and self.at(end + 1).value in ("arg", "args"):
                stop = self.skip_brackets(end + 2)
                texts += [token.value for token in self.tokens[end:stop] if token.is_text]
                end = stop
            self.keep_shell(texts)
        if name in READING:
            self.look_at_read(texts, names)
        if name in SENDING:
            self.look_at_sent(start, end, names)
        if (name in ("eval", "Function", "runInThisContext", "runInNewContext", "instance_eval") and not member) or (
            name == "loadstring"
        ):
            if names & FETCHING and (
                names & {"fetch", "axios", "http", "https", "got", "URI", "Net", "file_get_contents"}
            ):
                self.findings.reasons.append(("remote-code", "the code runs text that was fetched over the network"))
            elif names & {"atob", "base64", "Base64", "base64_decode", "decode64"} or "base64" in texts:
                self.findings.reasons.append(("remote-code", "the code runs text that was decoded"))

    def keep_shell(self, texts: list[str]) -> None:
        if not texts:
            return
        if len(texts) == 1 or re.search(r"\s", texts[0]):
            self.findings.shells.append(texts[0])
        else:
            self.findings.words.append(texts)

    def look_at_read(self, texts: list[str], names: set[str]) -> None:
        joined = "/".join(texts)
        at_home = (
            names & {"homedir", "HOME", "UserHomeDir", "USERPROFILE", "home", "home_dir", "Home"} or "HOME" in texts
        )
        if at_home:
            joined = f"{HOME}/{re.sub('user.home|HOME', '', joined).lstrip(UNKNOWN + '/')}"
        if secret := secret_in(re.sub(r"/+", "/", joined)):
            self.findings.reasons.append(("secret-exfiltration", f"the code reads {secret}"))

    def look_at_sent(self, start: int, end: int, names: set[str]) -> None:
        for position in range(start, end):
            token = self.at(position)
            if token.is_text and is_env_file(token.value) and any(_last(call) in READING for call in token.calls):
                self.findings.reasons.append(("secret-exfiltration", "the code sends a .env file"))
                return
            if self.is_environment(position):
                self.findings.reasons.append(("secret-exfiltration", "the code sends the whole environment"))
                return

    def is_environment(self, position: int) -> bool:
        values = [self.at(position + offset).value for offset in range(4)]
        if values[:3] == ["process", ".", "env"]:
            return values[3] not in (".", "[", "?")
        if values[:3] == ["os", ".", "Environ"] or (
            values[:2] == ["Deno", "."] and self.at(position + 4).value == "toObject"
        ):
            return True
        if values[0] == "ENV":
            return values[1] != "[" and values[2] not in ("fetch", "key")
        return values[0] in ("$_ENV",) and values[1] != "["
