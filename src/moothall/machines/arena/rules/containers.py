"""Rules `privileged-container` and `docker-socket`: a container that is not a boundary.

Read from commands, from nested settings (compose and Kubernetes files, a tool's arguments) and from words of code. The
options of `docker run` count up to the image; what stands behind it is the container's own business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from moothall.machines.arena.figures import names
from moothall.machines.arena.rules.documents import read_documents
from moothall.machines.arena.rules.shell import Command, Trace
from moothall.machines.arena.rules.texts import resolve

SOCKET = re.compile(r"(?:\b|%2F)(?:docker|podman|containerd|crio|cri-dockerd|buildkitd|dockershim)\.sock(?![\w-])")
ENGINES = frozenset({"docker", "podman", "nerdctl", "docker-compose", "podman-compose", "podman-remote", "buildah"})
ORCHESTRATORS = frozenset({"kubectl", "oc", "k3s", "helm", "microk8s"})
VERBS = frozenset({"run", "create", "exec", "up", "update"})
BARE_OPTIONS = names(
    "--rm --detach --tty --interactive --init --privileged --read-only --publish-all --no-healthcheck --quiet"
    " --oom-kill-disable --sig-proxy --disable-content-trust --no-deps --build --replace --service-ports -T -P"
)
ROOT_CAPABILITIES = ("ALL", "SYS_ADMIN")
MENTIONED = names("echo printf ls stat test [ [[ file grep egrep rg ag ack man which type logger say")
PATTERN_FIRST = names("grep egrep fgrep zgrep rg ag ack sed awk gawk perl")
CONTAINED = re.compile(
    r"docker|container|podman|compose|kube|k8s|helm|hostconfig|securitycontext|host_?(?:pid|path)|pid_?mode|cap_?add"
    r"|\b(?:services|image|pod|apiversion)\b",
    re.IGNORECASE,
)
"""What shows, as a key, in a name or in code, that containers are spoken of: other things are privileged, too."""
OWN = names("environment env labels annotations")
"""Keys of a container under which only its own business stands."""
MANIFESTS = ("manifest", "manifests", "yaml", "compose", "spec", "definition", "document", "config")
TRUE = (True, "true", "True", "yes", "on", 1)


def socket_reasons(told: Trace) -> Iterator[str]:
    """Why a shell text reaches a container engine's socket."""
    for command in told.commands:
        if command.name in MENTIONED or is_message(command):
            texts: list[str] = []
        else:
            texts = [*without_pattern(command), *command.reads]
        texts += [*command.writes, *(value.text for _, value in command.settings)]
        for text in texts:
            if match := SOCKET.search(text):
                yield f"{command.name or 'the shell'} reaches {match.group()}: whoever holds it holds the host"
                break


def without_pattern(command: Command) -> list[str]:
    """The arguments of a command, less the pattern or script that it searches or edits by."""
    words = list(command.arguments)
    if command.name not in PATTERN_FIRST:
        return words
    first = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    return words[:first] + words[first + 1 :]


def is_message(command: Command) -> bool:
    """Whether a command's words are a message for people: a commit, a tag, an issue."""
    words = [word for word in command.arguments if not word.startswith("-")]
    if command.name == "git":
        return words[:1] != [] and words[0] in (
            "commit",
            "tag",
            "log",
            "grep",
            "notes",
            "stash",
            "merge",
            "revert",
            "show",
        )
    return command.name in ("gh", "glab", "hub", "jira", "notify-send", "wall", "espeak", "cowsay", "figlet")


def privileged_reasons(told: Trace) -> Iterator[str]:
    """Why a shell text starts a container that may do what the host may."""
    for command in told.commands:
        if command.name in ENGINES:
            yield from _engine_reasons(command)
        elif command.name in ORCHESTRATORS:
            yield from _orchestrator_reasons(command)


def _engine_reasons(command: Command) -> Iterator[str]:
    for option, value in _options(command.arguments):
        if option == "--privileged" and value.lower() not in ("false", "0"):
            yield f"{command.name} runs a privileged container"
        elif option == "--cap-add" and (name := _root_capability(re.split(r"[,\s]+", value))):
            yield f"{command.name} gives a container the capability {name}"
        elif option == "--pid" and value == "host":
            yield f"{command.name} shows a container the host's processes"
        elif option in ("-v", "--volume", "--mount") and _is_root_mount(value, command.folder):
            yield f"{command.name} mounts the host's / into a container"


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options with their values, from the verb up to the image."""
    words = list(arguments)
    verb = next((at for at, word in enumerate(words) if word in VERBS), None)
    if verb is None:
        return
    position = verb + 1
    while position < len(words):
        word = words[position]
        position += 1
        if not word.startswith("-") or word == "-":
            return
        name, equals, value = word.partition("=")
        if equals:
            yield name, value
        elif word in BARE_OPTIONS or re.fullmatch(r"-[ditqP]+", word):
            yield word, ""
        elif match := re.fullmatch(r"-[ditqPT]+([a-z])", word):
            yield f"-{match.group(1)}", words[position] if position < len(words) else ""
            position += 1
        elif re.match(r"-[a-z][^-]", word) and not word.startswith("--"):
            yield word[:2], word[2:]
        else:
            yield word, words[position] if position < len(words) else ""
            position += 1


def _root_capability(names: Sequence[object]) -> str:
    for name in names:
        plain = str(name).upper().removeprefix("CAP_")
        if plain in ROOT_CAPABILITIES:
            return plain
    return ""


def _is_root(path: object, folder: str = "") -> bool:
    return isinstance(path, str) and path.startswith("/") and resolve(path, folder or "/") == "/"


def _is_root_mount(value: str, folder: str = "") -> bool:
    if "=" in value:
        fields = dict(part.partition("=")[::2] for part in value.split(","))
        return _is_root(fields.get("source", fields.get("src", "")), folder)
    source, colon, _ = value.partition(":")
    return bool(colon) and _is_root(source, folder)


def _orchestrator_reasons(command: Command) -> Iterator[str]:
    for word in command.arguments:
        flag = re.fullmatch(r"--privileged(?:=true)?", word) and command.name in ("kubectl", "oc")
        if flag or re.search(r"(?:^|[.,])(?:privileged|hostPID)=true\b", word):
            yield f"{command.name} asks for a privileged container"
        text = word.partition("=")[2] if word.startswith("--") else word
        if text.startswith("{"):
            try:
                yield from nested_reasons(json.loads(text))
            except ValueError:
                continue


# ---------------------------------------------------------------------- nested settings


def nested_reasons(value: object, key: str = "", *, of_tool: bool = False) -> Iterator[str]:
    """Why nested settings describe a container that may do what the host may."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if str(name).lower() not in OWN:
                yield from _setting_reasons(str(name), inner, parent=key)
                yield from nested_reasons(inner, str(name), of_tool=of_tool)
    elif isinstance(value, list | tuple):
        lists = ("volumes", "binds", "mounts", "volume", "mount", "v")
        if key.lower().replace("_", "") in lists and any(isinstance(v, str) and _is_root_mount(v) for v in value):
            yield f"{key} mounts the host's / into a container"
        if (of_tool or key.lower() in ("runargs", "options")) and all(isinstance(word, str) for word in value):
            yield from _listed_reasons([str(word) for word in value])
        for inner in value:
            yield from nested_reasons(inner, key, of_tool=of_tool)
    elif isinstance(value, str) and (key.lower() == "options" or (of_tool and value.lstrip().startswith("-"))):
        yield from _listed_reasons(value.split())
    elif isinstance(value, str) and of_tool and key.lower() in MANIFESTS:
        yield from nested_reasons(read_documents(value))


def _listed_reasons(words: Sequence[str]) -> Iterator[str]:
    """Options of a container that stand in a list of words."""
    start = next((at + 1 for at, word in enumerate(words) if word in VERBS), 0)
    for option, value in _options(["run", *words[start:]]):
        if option == "--privileged" and value.lower() not in ("false", "0"):
            yield "the options ask for a privileged container"
        elif option == "--cap-add" and _root_capability(value.split(",")):
            yield f"the options give a container the capability {_root_capability(value.split(','))}"
        elif option == "--pid" and value == "host":
            yield "the options show a container the host's processes"
        elif option in ("-v", "--volume", "--mount") and _is_root_mount(value):
            yield "the options mount the host's / into a container"


def _setting_reasons(name: str, value: object, *, parent: str) -> Iterator[str]:
    plain = re.sub(r"[_-]", "", name).lower()
    if plain == "privileged" and value in TRUE:
        yield "privileged: true gives a container the whole host"
    elif plain in ("pid", "pidmode") and value == "host":
        yield f"{name}: host shows a container the host's processes"
    elif plain in ("hostpid", "--pid") and (value in TRUE or value == "host"):
        yield f"{name} shows a container the host's processes"
    elif plain in ("capadd", "capabilities") or (plain == "add" and parent.lower() == "capabilities"):
        names = value if isinstance(value, list | tuple) else [value] if isinstance(value, str) else []
        if capability := _root_capability(names):
            yield f"{name} gives a container the capability {capability}"
    elif plain == "hostpath":
        path = value.get("path") if isinstance(value, Mapping) else value
        if _is_root(path):
            yield "hostPath of / shows a container the host's files"
    elif plain in ("source", "src") and parent.lower() in ("volumes", "mounts") and _is_root(value):
        yield "a volume mounts the host's / into a container"
    elif (plain in ("volumes", "binds") and isinstance(value, Mapping) and any(_is_root(path) for path in value)) or (
        plain in ("volumes", "volume", "binds", "mount") and isinstance(value, str) and _is_root_mount(value)
    ):
        yield f"{name} mounts the host's / into a container"


def is_about_containers(name: str, value: object) -> bool:
    """Whether nested settings, by the name of their file or tool and by their keys, are those of containers."""
    if CONTAINED.search(name):
        return True
    if isinstance(value, Mapping):
        return any(is_about_containers(str(key), inner) for key, inner in value.items())
    return isinstance(value, list | tuple) and any(is_about_containers("", inner) for inner in value)


def nested_texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in nested settings with the key it stands under."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield key, str(name)
            yield from nested_texts(inner, str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from nested_texts(inner, key)
    elif isinstance(value, str):
        yield key, value
