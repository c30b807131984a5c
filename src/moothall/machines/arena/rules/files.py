"""What a file is by its name and first line, and the commands that stand in build files and pipelines."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from moothall.machines.arena.figures import names
from moothall.machines.arena.rules.documents import read_documents
from moothall.machines.arena.rules.texts import UNKNOWN

PROSE = names("md markdown mdx rst txt adoc asciidoc org tex log csv tsv html htm svg po pot")
PROSE_NAMES = re.compile(
    r"(?:readme|licen[cs]e|copying|notice|authors|changelog|changes|contributing|codeowners)(?:\..*)?"
    r"|\.(?:git|docker|npm|eslint|prettier|helm|gcloud)ignore|\.gitattributes",
    re.IGNORECASE,
)
SHELL_EXTENSIONS = names("sh bash zsh ksh dash bats ash envrc command")
SHELL_NAMES = re.compile(r"\.(?:bash|zsh)(?:rc|_profile|_aliases)|\.profile|\.envrc|configure|gradlew|PKGBUILD")
CODE = {
    "py": "python", "pyi": "python", "pyw": "python",
    "js": "javascript", "mjs": "javascript", "cjs": "javascript", "ts": "javascript", "tsx": "javascript",
    "jsx": "javascript", "mts": "javascript", "cts": "javascript", "vue": "javascript", "svelte": "javascript",
    "java": "java", "kt": "kotlin", "kts": "kotlin", "scala": "scala", "groovy": "groovy", "gradle": "groovy",
    "go": "go", "rs": "rust", "rb": "ruby", "rake": "ruby", "php": "php", "pl": "perl", "pm": "perl", "cs": "csharp",
    "c": "c", "h": "c", "cc": "c", "cpp": "c", "hpp": "c", "swift": "swift", "dart": "dart", "lua": "lua", "r": "r",
    "ex": "elixir", "exs": "elixir", "tf": "hcl", "hcl": "hcl", "ps1": "powershell", "sql": "sql", "awk": "awk",
}  # fmt: skip
SHEBANG = re.compile(r"#!\s*\S*?(?:/env\s+(?:-S\s+)?)?(?:\S*/)?(\w+)[\d.]*")


def kind_of(path: str, content: str) -> str:
    """`prose`, `shell`, `make`, `just`, `dockerfile`, `yaml`, `json`, `toml`, `unit`, a language, or `text`."""
    name = path.rstrip("/").rsplit("/", 1)[-1]
    extension = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    if re.fullmatch(r"(?:.*\.)?(?:dockerfile|containerfile)(?:\..*)?", name, re.IGNORECASE):
        return "dockerfile"
    if extension in PROSE or PROSE_NAMES.fullmatch(name):
        return "prose"
    if re.fullmatch(r"(?:gnu)?makefile(?:\..*)?|.*\.mk", name, re.IGNORECASE):
        return "make"
    if re.fullmatch(r"\.?justfile|.*\.just", name, re.IGNORECASE):
        return "just"
    if extension in SHELL_EXTENSIONS or SHELL_NAMES.fullmatch(name):
        return "shell"
    by_extension = {"yml": "yaml", "yaml": "yaml", "json": "json", "jsonc": "json", "toml": "toml", "service": "unit"}
    if extension in by_extension:
        return by_extension[extension]
    if extension in CODE:
        return CODE[extension]
    if re.fullmatch(r"Jenkinsfile(?:\..*)?", name):
        return "groovy"
    if name in ("Rakefile", "Gemfile", "Vagrantfile", "Brewfile", "Fastfile"):
        return "ruby"
    return _kind_by_content(path, content)


def _kind_by_content(path: str, content: str) -> str:
    if match := SHEBANG.match(content):
        interpreter = match.group(1).lower()
        languages = {"python": "python", "node": "javascript", "ruby": "ruby", "perl": "perl", "php": "php"}
        return languages.get(interpreter, "shell")
    if re.search(r"(?:^|/)(?:\.husky|hooks|\.githooks)/[\w-]+$", path) or path.endswith(("Procfile", "crontab")):
        return "shell"
    return "text"


def make_commands(content: str) -> Iterator[str]:
    """The recipes of a Makefile as shell texts, its own variables filled in."""
    text = re.sub(r"\\\n[ \t]*", " ", content)
    variables: dict[str, str] = {"CURDIR": "$PWD", "MAKE": "make", "RM": "rm -f", "SHELL": "/bin/sh"}
    for match in re.finditer(r"(?m)^(?:export\s+|override\s+)?([\w.-]+)[ ]*(?:[:?+]|::)?=[ \t]*(.*)$", text):
        variables.setdefault(match.group(1), "")
        variables[match.group(1)] = re.sub(r"\s+#.*$", "", match.group(2)).strip()
    for line in text.split("\n"):
        recipe = re.match(r"\t\s*[@+-]*\s*(.*)", line) or re.match(r"[^#=\s][^=#]*:[^=]*?;\s*(.*)", line)
        if recipe:
            yield _make_expanded(recipe.group(1), variables, 0)


def _make_expanded(text: str, variables: dict[str, str], depth: int) -> str:
    def expand(match: re.Match[str]) -> str:
        if match.group() == "$$":
            return "$"
        name = match.group(1) or match.group(2) or match.group(3)
        if name in "@<^*?%+|" or " " in name or "," in name:
            return UNKNOWN
        name = name.partition(":")[0]
        if name == "HOME":
            return "$HOME"
        value = variables.get(name, f"$${{{name}}}" if re.fullmatch(r"\w+", name) else "")
        return _make_expanded(value, variables, depth + 1) if depth < 8 else UNKNOWN

    return re.sub(r"\$\$|\$\(([^()]*)\)|\$\{([^{}]*)\}|\$(.)", expand, text)


def just_commands(content: str) -> Iterator[str]:
    """The recipes of a justfile as shell texts."""
    values = dict(re.findall(r"(?m)^(\w+)\s*:=\s*[\"']([^\"']*)[\"']", content))
    for line in content.split("\n"):
        if re.match(r"[ \t]+\S", line):
            yield re.sub(r"\{\{\s*(.*?)\s*\}\}", lambda m: values.get(m.group(1), UNKNOWN), line.strip().lstrip("@-"))


def pipeline_commands(path: str, document: Any) -> Iterator[str]:
    """The shell texts of a pipeline's or task runner's YAML; a container's own commands are not among them."""
    name = path.rsplit("/", 1)[-1].lower()
    if ".github/" in path or "action." in name:
        keys: tuple[str, ...] = ("run",)
    elif "gitlab-ci" in name or ".gitlab" in path:
        keys = ("script", "before_script", "after_script")
    elif name.startswith("taskfile"):
        keys = ("cmds", "cmd")
    elif (
        "circleci" in path
        or "azure-pipelines" in name
        or "buildkite" in path
        or "travis" in name
        or "pre-commit" in name
    ):
        keys = ("run", "command", "commands", "script", "bash", "entry", "install", "before_install")
    elif isinstance(document, list) or "playbook" in path or "roles/" in path:
        keys = ("shell", "command", "ansible.builtin.shell", "ansible.builtin.command")
    else:
        return
    for text in _values_of(document, keys):
        yield re.sub(r"\$\{\{.*?\}\}|\{\{.*?\}\}", UNKNOWN, text)


def _values_of(value: Any, keys: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in keys and isinstance(inner, str):
                yield inner
            elif key in keys and isinstance(inner, list) and any(isinstance(part, str) for part in inner):
                yield "\n".join(part for part in inner if isinstance(part, str))
            else:
                yield from _values_of(inner, keys)
    elif isinstance(value, list):
        for inner in value:
            yield from _values_of(inner, keys)


def package_commands(path: str, document: Any) -> Iterator[str]:
    """The scripts of a package.json or its like."""
    name = path.rsplit("/", 1)[-1]
    if name in ("package.json", "composer.json", "deno.json", "tasks.json", "devcontainer.json") and isinstance(
        document, dict
    ):
        for key in ("scripts", "tasks"):
            scripts = document.get(key)
            if isinstance(scripts, dict):
                for script in scripts.values():
                    yield from (
                        text for text in (script if isinstance(script, list) else [script]) if isinstance(text, str)
                    )
        yield from _values_of(
            document, ("postCreateCommand", "postStartCommand", "onCreateCommand", "initializeCommand")
        )


def unit_commands(content: str) -> Iterator[str]:
    """The commands of a systemd unit, and its environment as a shell would set it."""
    yield from (f"export {match.group(1)}" for match in re.finditer(r"(?m)^Environment=(.*)$", content))
    yield from (match.group(1) for match in re.finditer(r"(?m)^Exec\w+=[-@+!:]*(.*)$", content))


def read_nested(kind: str, content: str) -> list[Any]:
    """The values of a YAML, JSON or TOML text; none where it cannot be read."""
    try:
        if kind == "json":
            return [json.loads(re.sub(r"(?m)^\s*//.*$", "", content))]
        if kind == "toml":
            return [tomllib.loads(content)]
    except ValueError:
        return []
    except RecursionError:
        return []
    return read_documents(content)
