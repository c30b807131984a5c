"""Shell text as a tree: what a POSIX shell or bash would see in it, before anything is expanded.

The reader never refuses: whatever a shell would call a syntax error is read as well as it goes, because a rule that
gives up on odd text is got round with odd text. It knows quotes, backslashes, expansions, here-documents, redirections,
pipelines, lists, groups, functions and the compound commands; it runs nothing and expands nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

META = frozenset(" \t\n;|&()<>")
BLANK = " \t"
RESERVED_ENDS = frozenset({"then", "do", "done", "fi", "elif", "else", "esac", "}"})
DEEPEST = 40

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
FUNCTION = re.compile(r"(?:function\s+([^\s(){};|&<>'\"$`]+)\s*(?:\(\s*\))?|([^\s(){};|&<>'\"$`=]+)\s*\(\s*\))\s*")
REDIRECTION = re.compile(r"(\d+|\{\w+\})?(<<<|<<-|<<|<>|<&|>&|>>|>\||&>>|&>|<|>)")
WORDLIKE = re.compile(r"(?:\[\[|[A-Za-z]+|[{}!])(?=[\s;|&()<>]|$)")
NAME = re.compile(r"[A-Za-z_]\w*|[0-9]|[@*#?$!-]")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that stands for itself."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name` or `${name…}`: the operation is what follows the name, its argument is text to expand in turn."""

    name: str
    operation: str = ""
    argument: tuple[Part, ...] = ()
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(…)`, backticks, or `<(…)`: the output of a list of commands."""

    body: Chain
    quoted: bool = False
    as_file: bool = False


Part = Literal | Variable | Substitution
WordParts = tuple[Part, ...]


@dataclass(slots=True)
class Redirection:
    """An operator with its word; a here-document's body arrives when the reader comes to the next line."""

    operator: str
    word: WordParts
    body: WordParts | None = None
    descriptor: str = ""


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments, words and redirections: one command."""

    assignments: tuple[tuple[str, WordParts], ...]
    words: tuple[WordParts, ...]
    redirections: tuple[Redirection, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands side by side; the output of each is the input of the next."""

    stages: tuple[Node, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A pipeline in a list: what joins it to the one before (`&&`, `||` or nothing), and whether it is waited for."""

    joint: str
    pipeline: Pipeline
    background: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Pipelines one after another."""

    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """`{ …; }` or `( … )`, with redirections for all of it."""

    body: Chain
    subshell: bool
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class Branches:
    """`if` or `case`: conditions with their bodies, the first that holds is taken; an empty condition is unknown."""

    cases: tuple[tuple[Chain | None, Chain], ...]
    otherwise: Chain = Chain()
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """`for`, `select`, `while` or `until`; only the first two have a variable."""

    body: Chain
    variable: str = ""
    values: tuple[WordParts, ...] | None = None
    condition: Chain = Chain()
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A name for commands."""

    name: str
    body: Node


Node = Simple | Group | Branches | Loop | Function


def read_shell(text: str) -> Chain:
    """The tree of a shell text; a function's brace may stand close to its first word, as only some shells take it."""
    text = re.sub(r"\(\)\s*\{(?=[^\s}])", "() { ", text.replace("\r\n", "\n"))
    return Reader(text).read_chain(frozenset())


def read_expansions(text: str) -> WordParts:
    """The parts of a text in which only variables and substitutions mean anything, as in a here-document."""
    return Reader(text).read_quoted("", inside_quotes=False)


@dataclass(slots=True)
class Reader:
    """A place in a text, and the here-documents whose bodies are still to come."""

    text: str
    at: int = 0
    depth: int = 0
    waiting: list[tuple[Redirection, str, bool, bool]] = field(default_factory=list)

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def is_done(self) -> bool:
        return self.at >= len(self.text)

    def take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def skip_blanks(self) -> None:
        while not self.is_done():
            if self.peek() in BLANK:
                self.at += 1
            elif self.peek(2) == "\\\n":
                self.at += 2
            elif self.peek() == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def skip_lines(self) -> None:
        """Blanks, comments, separators and ends of lines, reading the here-documents that begin there."""
        while True:
            self.skip_blanks()
            if self.peek() == "\n":
                self.at += 1
                self.read_documents()
            elif self.peek() == ";" and self.peek(2) != ";;":
                self.at += 1
            else:
                return

    def read_documents(self) -> None:
        for redirection, mark, quoted, stripped in self.waiting:
            lines = []
            while not self.is_done():
                end = self.text.find("\n", self.at)
                line = self.text[self.at :] if end < 0 else self.text[self.at : end]
                self.at = len(self.text) if end < 0 else end + 1
                line = line.lstrip("\t") if stripped else line
                if line.rstrip() == mark:
                    break
                lines.append(line + "\n")
            body = "".join(lines)
            redirection.body = (Literal(body, True),) if quoted else read_expansions(body)
        self.waiting.clear()

    def word_ahead(self) -> str:
        """The reserved word that stands here, if one might."""
        match = WORDLIKE.match(self.text, self.at)
        return match.group() if match else ""

    # ------------------------------------------------------------------ lists and pipelines

    def read_chain(self, ends: frozenset[str]) -> Chain:
        """Commands up to one of these words or signs, which stays where it is."""
        links: list[Link] = []
        joint = ""
        while True:
            self.skip_lines()
            if self.is_done() or self.peek(2) == ";;" or self.word_ahead() in ends:
                break
            if self.peek() == ")":
                if ")" in ends:
                    break
                self.at += 1
                continue
            start = self.at
            pipeline = self.read_pipeline(ends)
            self.skip_blanks()
            background = False
            following = ""
            if self.peek(2) in ("&&", "||"):
                following = self.peek(2)
                self.at += 2
            elif self.peek() == "&":
                background = True
                self.at += 1
            if pipeline.stages:
                links.append(Link(joint, pipeline, background))
            joint = following
            if self.at == start:
                self.at += 1  # whatever stands here is not a command; go on behind it
        return Chain(tuple(links))

    def read_pipeline(self, ends: frozenset[str]) -> Pipeline:
        negated = False
        stages: list[Node] = []
        while True:
            self.skip_blanks()
            while self.word_ahead() in ("!", "time"):
                negated ^= self.word_ahead() == "!"
                self.at += len(self.word_ahead())
                self.skip_blanks()
            node = self.read_command()
            if node is not None:
                stages.append(node)
            self.skip_blanks()
            if self.peek() == "|" and self.peek(2) != "||":
                self.at += 2 if self.peek(2) == "|&" else 1
                self.skip_lines()
                if self.word_ahead() not in ends:
                    continue
            return Pipeline(tuple(stages), negated)

    def read_command(self) -> Node | None:
        if self.depth >= DEEPEST:
            self.at = len(self.text)
            return None
        self.depth += 1
        try:
            return self.read_compound() or self.read_simple()
        finally:
            self.depth -= 1

    def read_compound(self) -> Node | None:
        if self.peek(2) == "((" and (end := self.text.find("))", self.at)) > 0 and "\n" not in self.text[self.at : end]:
            self.at = end + 2
            return Simple((), ((Literal("true"),),), ())
        if self.take("("):
            body = self.read_chain(frozenset({")"}))
            self.take(")")
            return Group(body, True, self.read_redirections())
        function = FUNCTION.match(self.text, self.at)
        if function and (function.group(1) or function.group(2)) not in RESERVED_ENDS:
            return self.read_function(function)
        match self.word_ahead():
            case "{":
                self.at += 1
                body = self.read_chain(frozenset({"}"}))
                self.take("}")
                return Group(body, False, self.read_redirections())
            case "if":
                return self.read_if()
            case "while" | "until":
                self.at += 5
                condition = self.read_chain(frozenset({"do"}))
                return Loop(self.read_body(), condition=condition, redirections=self.read_redirections())
            case "for" | "select":
                return self.read_for()
            case "case":
                return self.read_case()
            case "[[":
                return self.read_double_test()
        return None

    def read_function(self, match: re.Match[str]) -> Node | None:
        start = self.at
        self.at = match.end()
        self.skip_lines()
        body = self.read_compound() if self.peek() in "{(" or self.word_ahead() else None
        if body is None:
            self.at = start
            return None
        return Function(match.group(1) or match.group(2), body)

    def read_if(self) -> Node:
        cases: list[tuple[Chain | None, Chain]] = []
        self.at += 2
        otherwise = Chain()
        while True:
            condition = self.read_chain(frozenset({"then"}))
            self.take("then")
            cases.append((condition, self.read_chain(frozenset({"elif", "else", "fi"}))))
            if self.take("elif"):
                continue
            if self.take("else"):
                otherwise = self.read_chain(frozenset({"fi"}))
            self.take("fi")
            return Branches(tuple(cases), otherwise, self.read_redirections())

    def read_body(self) -> Chain:
        self.skip_lines()
        if self.take("{"):
            body = self.read_chain(frozenset({"}"}))
            self.take("}")
            return body
        self.take("do")
        body = self.read_chain(frozenset({"done"}))
        self.take("done")
        return body

    def read_for(self) -> Node:
        self.at += len(self.word_ahead())
        self.skip_blanks()
        name = NAME.match(self.text, self.at)
        if name is None:  # for ((;;))
            end = self.text.find("))", self.at)
            self.at = len(self.text) if end < 0 else end + 2
            return Loop(self.read_body(), redirections=self.read_redirections())
        self.at = name.end()
        self.skip_lines()
        values: tuple[WordParts, ...] | None = None
        if self.word_ahead() == "in":
            self.at += 2
            values = self.read_words()
        return Loop(self.read_body(), name.group(), values, redirections=self.read_redirections())

    def read_words(self) -> tuple[WordParts, ...]:
        words: list[WordParts] = []
        while True:
            self.skip_blanks()
            if self.is_done() or self.peek() in "\n;|&)":
                return tuple(words)
            start = self.at
            words.append(self.read_word())
            if self.at == start:
                self.at += 1

    def read_case(self) -> Node:
        self.at += 4
        self.skip_blanks()
        self.read_word()
        self.skip_lines()
        if self.word_ahead() == "in":
            self.at += 2
        cases: list[tuple[Chain | None, Chain]] = []
        while True:
            self.skip_lines()
            if self.is_done() or self.word_ahead() == "esac":
                self.take("esac")
                return Branches(tuple(cases), redirections=self.read_redirections())
            end = self.text.find(")", self.at + 1 if self.peek() == "(" else self.at)
            self.at = len(self.text) if end < 0 else end + 1
            cases.append((None, self.read_chain(frozenset({"esac"}))))
            while self.peek() in (";", "&") and not self.is_done():
                self.at += 1

    def read_double_test(self) -> Node:
        self.at += 2
        words: list[WordParts] = [(Literal("[["),)]
        while True:
            while self.peek() in " \t\n" and not self.is_done():
                self.at += 1
            if self.is_done() or self.take("]]"):
                return Simple((), tuple(words), self.read_redirections())
            start = self.at
            word = self.read_word()
            if self.at == start:
                word = (Literal(self.peek()),)
                self.at += 1
            words.append(word)

    # ------------------------------------------------------------------ commands and words

    def read_simple(self) -> Node | None:
        assignments: list[tuple[str, WordParts]] = []
        words: list[WordParts] = []
        redirections: list[Redirection] = []
        while True:
            self.skip_blanks()
            if (redirection := self.read_redirection()) is not None:
                redirections.append(redirection)
                continue
            if self.is_done() or (self.peek() in META and self.peek(2) not in ("<(", ">(")):
                break
            assigned = None if words else ASSIGNMENT.match(self.text, self.at)
            if assigned is not None:
                self.at = assigned.end()
                name = assigned.group().rstrip("=").rstrip("+").split("[")[0]
                assignments.append((name, self.read_array() if self.take("(") else self.read_word()))
                continue
            words.append(self.read_word())
        if not (assignments or words or redirections):
            return None
        return Simple(tuple(assignments), tuple(words), tuple(redirections))

    def read_array(self) -> WordParts:
        parts: list[Part] = []
        while not self.is_done() and not self.take(")"):
            self.skip_lines()
            start = self.at
            word = self.read_word()
            parts += [Literal(" "), *word] if parts else [*word]
            if self.at == start and not self.take(")"):
                self.at += 1
            elif self.at > start and self.text[self.at - 1] == ")" and not word:
                break
        return tuple(parts)

    def read_redirections(self) -> tuple[Redirection, ...]:
        redirections: list[Redirection] = []
        while True:
            self.skip_blanks()
            redirection = self.read_redirection()
            if redirection is None:
                return tuple(redirections)
            redirections.append(redirection)

    def read_redirection(self) -> Redirection | None:
        match = REDIRECTION.match(self.text, self.at)
        if match is None or (match.group() in "<>" and self.text[match.end() : match.end() + 1] == "("):
            return None
        self.at = match.end()
        self.skip_blanks()
        start = self.at
        word = self.read_word()
        redirection = Redirection(match.group(2), word, descriptor=match.group(1) or "")
        if match.group(2) in ("<<", "<<-"):
            raw = self.text[start : self.at]
            mark = re.sub(r"[\\'\"]", "", raw)
            self.waiting.append((redirection, mark, mark != raw, match.group(2) == "<<-"))
        return redirection

    def read_word(self) -> WordParts:
        """One word, up to a blank or a sign that a shell does not take into words."""
        parts: list[Part] = []
        plain: list[str] = []

        def flush() -> None:
            if plain:
                parts.append(Literal("".join(plain)))
                plain.clear()

        while not self.is_done():
            sign = self.peek()
            if self.peek(2) in ("<(", ">(") and not plain and not parts:
                self.at += 2
                body = self.read_chain(frozenset({")"}))
                self.take(")")
                parts.append(Substitution(body, as_file=True))
            elif sign in META:
                break
            elif sign == "\\":
                flush()
                if self.peek(2) != "\\\n":
                    parts.append(Literal(self.peek(2)[1:], True))
                self.at += 2
            elif sign in "'\"$`":
                flush()
                parts += self.read_special(quoted=False)
            else:
                plain.append(sign)
                self.at += 1
        flush()
        return tuple(parts)

    def read_special(self, *, quoted: bool) -> list[Part]:
        """What begins with a quote, a dollar or a backtick."""
        sign = self.peek()
        if sign == "'" and not quoted:
            end = self.text.find("'", self.at + 1)
            end = len(self.text) if end < 0 else end
            text = self.text[self.at + 1 : end]
            self.at = end + 1
            return [Literal(text, True)]
        if sign == '"' and not quoted:
            self.at += 1
            inner = self.read_quoted('"')
            return list(inner) or [Literal("", True)]
        if sign == "`":
            return [self.read_backticks(quoted=quoted)]
        return [self.read_dollar(quoted=quoted)]

    def read_quoted(self, end: str, *, inside_quotes: bool = True) -> WordParts:
        """Text up to a closing sign, in which only dollars, backticks and some backslashes are special."""
        parts: list[Part] = []
        plain: list[str] = []
        escapable = '$`"\\' if inside_quotes else "$`\\"
        while not self.is_done() and not (end and self.peek() == end):
            if self.peek() == "\\" and (self.peek(2)[1:] in escapable or self.peek(2) == "\\\n"):
                plain.append("" if self.peek(2) == "\\\n" else self.peek(2)[1:])
                self.at += 2
            elif self.peek() in "$`":
                parts.append(Literal("".join(plain), True))
                plain.clear()
                parts += self.read_special(quoted=True)
            else:
                plain.append(self.peek())
                self.at += 1
        self.at += len(end)
        if plain:
            parts.append(Literal("".join(plain), True))
        return tuple(parts)

    def read_backticks(self, *, quoted: bool) -> Part:
        self.at += 1
        inner: list[str] = []
        while not self.is_done() and self.peek() != "`":
            if self.peek() == "\\" and self.peek(2)[1:] in "`\\$":
                self.at += 1
            inner.append(self.peek())
            self.at += 1
        self.at += 1
        reader = Reader("".join(inner), depth=self.depth + 1)
        return Substitution(reader.read_chain(frozenset()) if reader.depth < DEEPEST else Chain(), quoted)

    def read_dollar(self, *, quoted: bool) -> Part:
        if self.peek(3) == "$((":
            end = self.text.find("))", self.at)
            if end > 0:
                self.at = end + 2
                return Variable("((", quoted=quoted)
        if self.take("$("):
            body = self.read_chain(frozenset({")"}))
            self.take(")")
            return Substitution(body, quoted)
        if self.take("${"):
            return self.read_parameter(quoted=quoted)
        if not quoted and self.peek(2) == "$'":
            return self.read_escaped()
        if not quoted and self.peek(2) == '$"':
            self.at += 1
            return Literal("", True)
        self.at += 1
        name = NAME.match(self.text, self.at)
        if name is None:
            return Literal("$", quoted)
        self.at = name.end()
        return Variable(name.group(), quoted=quoted)

    def read_parameter(self, *, quoted: bool) -> Part:
        """`${…}` behind its opening brace."""
        length = self.peek() == "#" and self.peek(2)[1:] not in ("}", "")
        indirect = self.peek() == "!" and self.peek(2)[1:] != "}"
        self.at += 1 if length or indirect else 0
        name = NAME.match(self.text, self.at)
        label = name.group() if name else ""
        self.at = name.end() if name else self.at
        if self.peek() == "[":
            end = self.text.find("]", self.at)
            self.at = len(self.text) if end < 0 else end + 1
        match = re.compile(r":?[-=?+]|##?|%%?|//?[#%]?|\^\^?|,,?|:|@").match(self.text, self.at)
        operation = "length" if length else "indirect" if indirect else match.group() if match else ""
        self.at = match.end() if match else self.at
        argument: list[Part] = []
        while not self.is_done() and self.peek() != "}":
            if self.peek() == "\\":
                argument.append(Literal(self.peek(2)[1:], True))
                self.at += 2
            elif self.peek() in "'\"$`":
                argument += self.read_special(quoted=quoted and self.peek() != '"')
            else:
                argument.append(Literal(self.peek(), quoted))
                self.at += 1
                continue
            if self.at > len(self.text):
                break
        self.at += 1
        return Variable(label, operation, tuple(argument), quoted)

    def read_escaped(self) -> Part:
        """`$'…'` with the escapes of C."""
        match = re.compile(r"\$'((?:[^'\\]|\\.)*)'?", re.DOTALL).match(self.text, self.at)
        self.at = match.end() if match else len(self.text)
        return Literal(unescape(match.group(1) if match else ""), True)


def unescape(text: str) -> str:
    """A text with the backslash escapes of C, as `echo -e`, `printf` and `$'…'` read it."""

    def replace(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] in "xuU" and len(code) > 1:
            return chr(min(int(code[1:], 16), 0x10FFFF))
        if code[0] in "01234567":
            return chr(int(code, 8) % 256)
        return ESCAPES.get(code, code)

    return re.sub(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,4}|.)", replace, text, flags=re.S)
