"""What is known of common programs: which run another command, what they print, which files they fetch.

Tables first; the functions below read them. Words are those of a command, its name first.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moothall.machines.arena.rules.syntax import unescape
from moothall.machines.arena.rules.texts import UNKNOWN, WORK, Text, constant, join, resolve, unknown

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash"})
LANGUAGES = {
    "python": "python",
    "pypy": "python",
    "node": "javascript",
    "nodejs": "javascript",
    "deno": "javascript",
    "bun": "javascript",
    "perl": "perl",
    "ruby": "ruby",
    "php": "php",
    "lua": "lua",
    "rscript": "r",
    "pwsh": "powershell",
    "powershell": "powershell",
}
PREFIXES: dict[str, str] = {
    # name → its options that take a value; behind them stands a command
    "sudo": "ugphCTDrtR",
    "doas": "uC",
    "pkexec": "",
    "nice": "n",
    "ionice": "cnp",
    "nohup": "",
    "setsid": "",
    "stdbuf": "ioe",
    "command": "",
    "builtin": "",
    "exec": "a",
    "env": "uCS",
    "timeout": "ks",
    "gtimeout": "ks",
    "time": "fo",
    "busybox": "",
    "toybox": "",
    "strace": "eosp",
    "ltrace": "eosp",
    "chronic": "",
    "caffeinate": "tw",
    "xvfb-run": "sn",
    "unbuffer": "",
    "chrt": "p",
    "taskset": "p",
    "numactl": "",
    "chroot": "",
    "fakeroot": "",
    "catchsegv": "",
    "unshare": "",
    "prlimit": "",
    "systemd-run": "pu",
    "eatmydata": "",
    "torsocks": "",
    "proxychains": "f",
    "proxychains4": "f",
}
LEADING = {"timeout": 1, "gtimeout": 1, "chroot": 1, "taskset": 1, "chrt": 1}
"""Prefixes that have operands of their own before the command."""
RUNNERS = {"poetry", "uv", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "pixi", "bundle", "direnv"}
FETCHERS = frozenset(
    {"curl", "wget", "aria2c", "http", "https", "xh", "curlie", "fetch", "lwp-download", "lynx", "w3m"}
)
LISTENERS = frozenset({"nc", "ncat", "netcat", "socat", "telnet"})
SILENT = frozenset({"wc", "cksum", "cmp", "diff", "true", "test", "sleep", "jobs", "kill", "mkdir", "touch", "chmod"})
"""Programs that do not print their input."""
DIGESTS = re.compile(r"(?:sha\d*|md5|b2|blake\w*)sum|shasum|md5|cksum")
EXTENSIONS = r"(?:sh|bash|py|pl|rb|js|mjs|php|lua|ps1)"


@dataclass(frozen=True, slots=True)
class Inner:
    """What a prefix leads to: words to run, or a text for a shell with its parameters.

    Perhaps in another folder, perhaps with variables set for it.
    """

    words: tuple[Text, ...] = ()
    script: Text | None = None
    called: Text | None = None
    parameters: tuple[Text, ...] = ()
    folder: Text | None = None
    settings: tuple[tuple[str, Text], ...] = ()


def name_of(words: Sequence[Text]) -> str:
    """A program's name in small letters, without its folder."""
    return words[0].text.rsplit("/", 1)[-1].lower() if words else ""


def language_of(name: str) -> str:
    """The language that an interpreter of this name reads, or nothing."""
    if name in SHELLS:
        return name
    return LANGUAGES.get(re.sub(r"[\d.]+$", "", name), "")


def unwrap(words: Sequence[Text]) -> Inner | None:
    """The command inside a command, where it is a prefix or has a shell run a text; None where it is neither."""
    name = name_of(words)
    if name in SHELLS:
        return _shell_text(words)
    if name in PREFIXES:
        return _behind_prefix(name, words)
    texts = [word.text for word in words]
    if name in RUNNERS and len(words) > 2 and texts[1] in ("run", "exec"):
        return Inner(_skip_options(words[2:], ""))
    if name == "git" and "bisect" in texts and "run" in texts:
        return Inner(tuple(words[texts.index("run") + 1 :]))
    if name in ("su", "runuser", "script", "flock") and (script := _option(words, "c", "command")) is not None:
        return Inner(script=script)
    if name == "flock":
        return Inner(_skip_options(words[1:], "wE")[1:]) if len(words) > 2 else None
    if name == "watch":
        return Inner(script=join(_skip_options(words[1:], "n")))
    if name == "ssh":
        behind = _skip_options(words[1:], "bcDEeFIiJLlmOopQRSWw")[1:]
        return Inner(script=join(behind)) if behind else None
    return None


def _shell_text(words: Sequence[Text]) -> Inner | None:
    for position, word in enumerate(words[1:], start=1):
        if re.fullmatch(r"[-+][a-zA-Z]*[oO]|--rcfile|--init-file", word.text):
            continue
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.text):
            behind = list(words[position + 1 :])
            while behind and behind[0].text.startswith("-") and len(behind) > 1:
                behind.pop(0)
            if not behind:
                return None
            return Inner(script=behind[0], called=behind[1] if behind[1:] else words[0], parameters=tuple(behind[2:]))
        if not word.text.startswith(("-", "+")) and not re.fullmatch(r"[-+][a-zA-Z]*[oO]", words[position - 1].text):
            return None
    return None


def _behind_prefix(name: str, words: Sequence[Text]) -> Inner | None:
    if name == "command" and any(word.text in ("-v", "-V") for word in words[1:2]):
        return None
    folder = _option(words, "C", "chdir") if name == "env" else _option(words, "D", "chdir") if name == "sudo" else None
    if name == "env" and (split := _option(words, "S", "split-string")) is not None:
        return Inner(script=split)
    rest = _skip_options(words[1:], PREFIXES[name])
    settings: list[tuple[str, Text]] = []
    while name in ("env", "sudo", "doas") and rest and (match := re.match(r"(\w+)=", rest[0].text)):
        value, start = rest[0], match.end()
        settings.append((match.group(1), Text(value.text[start:], value.shape[start:], value.tags)))
        rest = rest[1:]
    rest = rest[LEADING.get(name, 0) :]
    return Inner(tuple(rest), folder=folder, settings=tuple(settings)) if rest else None


def _skip_options(words: Sequence[Text], valued: str) -> tuple[Text, ...]:
    """The words behind the options; letters in `valued` take the next word with them."""
    position = 0
    while position < len(words) and words[position].text.startswith("-") and words[position].text != "-":
        option = words[position].text
        position += 1
        if option == "--":
            break
        if (
            not option.startswith("--")
            and option[-1] in valued
            and not any(letter in valued for letter in option[1:-1])
        ) or option in ("--user", "--group", "--chdir", "--signal", "--kill-after", "--adjustment", "--unset"):
            position += 1
    return tuple(words[position:])


def _option(words: Sequence[Text], letter: str, name: str) -> Text | None:
    """The value of an option, written in any of its ways."""
    for position, word in enumerate(words[1:], start=1):
        if word.text in (f"-{letter}", f"--{name}"):
            return words[position + 1] if position + 1 < len(words) else None
        for start in (f"--{name}=", f"-{letter}"):
            if word.text.startswith(start) and not (start == f"-{letter}" and word.text.startswith("--")):
                return Text(word.text[len(start) :], word.shape[len(start) :], word.tags)
    return None


def interpreter_program(words: Sequence[Text], stdin: Text | None) -> tuple[str, Text | None, Text | None] | None:
    """Language, code and file of what an interpreter runs; None where the command is none or runs something else."""
    name = name_of(words)
    language = language_of(name)
    if not language:
        return _awk_program(name, words)
    code_flags = {"python": "c", "powershell": "c", "php": "r"}.get(language, "e")
    position = 1
    while position < len(words):
        word = words[position]
        text = word.text
        if text == "-" or (language in SHELLS and re.fullmatch(r"-[a-z]*s[a-z]*", text)):
            return language, stdin, None
        if text == "--":
            position += 1
            continue
        if language == "python" and text.startswith("-m"):
            return None
        takes_value = re.fullmatch(r"[-+][a-zA-Z]*o", text) if language in SHELLS else text in ("-W", "-X", "-r", "-I")
        if takes_value and language != "php":
            position += 2
            continue
        if text in ("--eval", "-Command", "-command", "eval", "-p") and language not in SHELLS | {"python", "perl"}:
            return language, words[position + 1] if position + 1 < len(words) else None, None
        if language not in SHELLS and re.fullmatch(rf"-[a-zA-Z]*{code_flags}", text):
            return language, words[position + 1] if position + 1 < len(words) else None, None
        if text in ("--version", "-V", "--help", "-h") or (text == "-v" and language != "python"):
            return None
        if name in ("deno", "bun") and text in ("run", "test", "install", "x"):
            position += 1
            continue
        if not text.startswith(("-", "+")) or text.startswith(UNKNOWN):
            return language, None, word
        position += 1
    return language, stdin, None


def _awk_program(name: str, words: Sequence[Text]) -> tuple[str, Text | None, Text | None] | None:
    if name not in ("awk", "gawk", "mawk", "nawk"):
        return None
    programs = [word for word in words[1:] if "system(" in word.text.replace(" ", "")]
    return ("awk", programs[0], None) if programs else None


def xargs_command(words: Sequence[Text], stdin: Text | None) -> list[tuple[Text, ...]]:
    """The commands that `xargs` would run for its input; one with an unknown word where the input is unknown."""
    mark = _option(words, "I", "replace")
    rest = _skip_options(words[1:], "IadELnPs")
    inner = rest or (constant("echo"),)
    tags = stdin.tags if stdin else frozenset()
    lines = (stdin.text if stdin else UNKNOWN).replace("\0", "\n")
    if mark is not None:
        return [
            tuple(Text(w.text.replace(mark.text or "{}", line), w.shape, w.tags | tags) for w in inner)
            for line in lines.splitlines() or [UNKNOWN]
        ]
    words_in = re.findall(r"'[^']*'|\"[^\"]*\"|[^\s'\"]+", lines)
    return [(*inner, *(Text(word.strip("'\""), word, tags) for word in words_in))]


def find_command(words: Sequence[Text]) -> list[tuple[Text, ...]]:
    """The commands that `find` runs for what it finds."""
    texts = [word.text for word in words]
    start = next((text for text in texts[1:] if text not in ("-H", "-L", "-P")), ".")
    start = "." if start.startswith(("-", "(", "!")) else start
    commands = []
    for position, text in enumerate(texts):
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((at for at in range(position + 1, len(texts)) if texts[at] in (";", "+")), len(texts))
            place = f"{start.rstrip('/')}/{UNKNOWN}"
            commands.append(
                tuple(Text(w.text.replace("{}", place), w.shape, w.tags) for w in words[position + 1 : end])
            )
    return [command for command in commands if command]


def fetched_file(words: Sequence[Text]) -> list[str]:
    """The files that a fetching program writes."""
    name = name_of(words)
    texts = [word.text for word in words]
    addresses = [text for text in texts[1:] if re.match(r"(?:https?|ftp)://", text)]
    last = [re.sub(r"[?#].*", "", address).rstrip("/").rsplit("/", 1)[-1] for address in addresses]
    if name == "curl":
        target = _clustered_option(words, "o", "output")
        remote = any(re.fullmatch(r"-[a-zA-Z]*O[a-zA-Z]*|--remote-name(?:-all)?", text) for text in texts)
        return [target] if target else last if remote else []
    if name == "wget":
        target = _clustered_option(words, "O", "output-document")
        folder = _clustered_option(words, "P", "directory-prefix")
        return (
            ([] if target == "-" else [target]) if target else [f"{folder}/{file}" if folder else file for file in last]
        )
    if name == "aria2c":
        target = _clustered_option(words, "o", "out")
        return [target] if target else last
    if name in ("http", "https", "xh"):
        target = _clustered_option(words, "o", "output")
        return [target] if target else []
    return []


def _clustered_option(words: Sequence[Text], letter: str, name: str) -> str:
    """The value of an option that may end a cluster (`-sSLo FILE`, `-qO-`)."""
    for position, word in enumerate(words[1:], start=1):
        following = words[position + 1].text if position + 1 < len(words) else ""
        if word.text == f"--{name}":
            return following
        if word.text.startswith(f"--{name}="):
            return word.text.partition("=")[2]
        match = re.fullmatch(rf"-[a-zA-Z]*?{letter}(.*)", word.text)
        if match and not word.text.startswith("--"):
            return match.group(1) or following
    return ""


ORCHESTRATED = frozenset({"kubectl", "oc", "docker", "docker-compose", "podman", "podman-compose", "k3s"})
"""Programs that read settings of containers from their input."""

FileReader = Callable[[str], Text]


def printed_text(words: Sequence[Text], stdin: Text | None, read: FileReader, folder: str) -> Text:
    """What a program prints, as far as that is known; else its input's origin, which most programs pass on."""
    name = name_of(words)
    arguments = list(words[1:])
    plain = [word for word in arguments if not word.text.startswith("-")]
    passed = stdin.tags if stdin else frozenset()
    match name:
        case "echo":
            return _echo_text(arguments)
        case "printf":
            return _printf_text(arguments[1:] if arguments and arguments[0].text == "--" else arguments)
        case "pwd":
            return constant(folder + "\n")
        case "git" if [word.text for word in arguments] == ["rev-parse", "--show-toplevel"]:
            return constant(WORK + "\n")
        case "cat" | "tac" | "head" | "tail" | "zcat" | "gunzip" | "bzcat" | "xzcat" | "less" | "more" | "nl":
            files = [word for word in plain if not word.text.isdigit()]
            if not files:
                return stdin or unknown()
            return join((_tag_text(read(word.text), word.tags) for word in files), "\n")
        case "tee":
            return stdin or unknown()
        case "ls" if any(re.fullmatch(r"-\w*d\w*", word.text) for word in arguments):
            return join(plain, "\n")
        case "rev":
            return constant("\n".join(line[::-1] for line in stdin.text.split("\n"))) if stdin else unknown()
        case "dirname" | "realpath" | "readlink" | "basename":
            return _path_part(name, plain, folder)
        case "env" | "printenv" if not [word for word in arguments if word.text not in ("-0", "--null")]:
            return unknown({"environment"})
        case "base64" | "openssl" | "xxd" | "base32" | "uudecode":
            return _decoded_text(name, words, stdin, read)
        case "aws" | "gsutil" | "gcloud" if (plain and plain[-1].text == "-") or "cat" in [w.text for w in plain]:
            return unknown({"fetched"})
    if name in FETCHERS:
        return unknown(passed | {"fetched"}) if _prints_fetched(name, words) else Text()
    if name in LISTENERS:
        return unknown(passed | {"fetched"})
    if name in SILENT or DIGESTS.fullmatch(name) or (name == "grep" and {"-q", "-c"} & {w.text for w in arguments}):
        return unknown()
    named = (
        frozenset().union(*(read(word.text).tags for word in plain if word.text)) if name in FILTERS else frozenset()
    )
    return unknown(passed | named)


FILTERS = frozenset(
    {
        "grep",
        "egrep",
        "sed",
        "awk",
        "sort",
        "uniq",
        "cut",
        "tr",
        "gzip",
        "xz",
        "bzip2",
        "zstd",
        "tar",
        "zip",
        "jq",
        "strings",
    }
)


def _prints_fetched(name: str, words: Sequence[Text]) -> bool:
    if name == "wget":
        return _clustered_option(words, "O", "output-document") in ("-", "/dev/stdout")
    if name == "aria2c":
        return False
    return not [path for path in fetched_file(words) if path not in ("-", "/dev/stdout")]


def _tag_text(text: Text, tags: frozenset[str]) -> Text:
    return Text(text.text, text.shape, text.tags | tags)


def _echo_text(arguments: Sequence[Text]) -> Text:
    words = list(arguments)
    escapes = newline = True
    escapes = False
    while words and re.fullmatch(r"-[neE]+", words[0].text):
        flags = words.pop(0).text
        escapes |= "e" in flags
        newline &= "n" not in flags
    joined = join(words) + constant("\n" if newline else "")
    return Text(unescape(joined.text), unescape(joined.shape), joined.tags) if escapes else joined


def _printf_text(arguments: Sequence[Text]) -> Text:
    """`printf`: the format as often as there are arguments for it."""
    if not arguments:
        return Text()
    if arguments[0].text == "-v":
        return Text()
    pattern = arguments[0]
    slots = re.findall(r"%[-+ 0#]*\d*(?:\.\d+)?[a-zA-Z]", pattern.text)
    if not slots:
        return Text(unescape(pattern.text).replace("%%", "%"), unescape(pattern.shape), pattern.tags)
    rest = list(arguments[1:]) or [Text()]
    output = Text()
    while rest:
        pieces = re.split(r"%[-+ 0#]*\d*(?:\.\d+)?[a-zA-Z]", pattern.text)
        for piece, slot in zip(pieces, [*slots, ""], strict=True):
            output = output + constant(unescape(piece).replace("%%", "%"))
            if slot:
                value = rest.pop(0) if rest else Text()
                output = output + (
                    Text(unescape(value.text), unescape(value.shape), value.tags) if slot[-1] == "b" else value
                )
    return Text(output.text, output.shape, output.tags | pattern.tags)


def _path_part(name: str, plain: Sequence[Text], folder: str) -> Text:
    if not plain or not plain[-1].is_known():
        return unknown()
    path = plain[0].text
    if name == "basename":
        return constant(path.rstrip("/").rsplit("/", 1)[-1] + "\n")
    if name == "dirname":
        if path.rstrip("/") in (WORK, resolve(WORK)):
            return constant(f"{WORK}/..\n")
        head = path.rstrip("/").rsplit("/", 1)[0] if "/" in path.rstrip("/") else "."
        return constant((head or "/") + "\n")
    return constant(resolve(path, folder) + "\n")


def _decoded_text(name: str, words: Sequence[Text], stdin: Text | None, read: FileReader) -> Text:
    """Decoded text: known where it was known before, and marked as decoded."""
    texts = [word.text for word in words]
    decodes = name == "uudecode" or any(
        re.fullmatch(r"-d|-D|--decode|-di|-id|-r|-d[a-zA-Z]+", text) for text in texts[1:]
    )
    passed = stdin.tags if stdin else frozenset()
    plain = [word for word in words[1:] if not word.text.startswith("-")]
    if not decodes:
        files = frozenset().union(*(read(word.text).tags | word.tags for word in plain))
        return unknown(passed | files)
    if name == "openssl" and not {"base64", "enc"} & set(texts):
        return unknown(passed)
    source = read(plain[-1].text) if plain and name == "base64" else stdin
    if name in ("base64", "openssl") and source is not None and source.is_known():
        try:
            return Text(
                base64.b64decode("".join(source.text.split())).decode(errors="replace"),
                UNKNOWN,
                frozenset({"decoded"}) | source.tags,
            )
        except (binascii.Error, ValueError):
            pass  # not what it claims to be; the origin still counts
    return unknown(passed | {"decoded"})
