"""The command that writes what a shell completes: `completion`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from moothall.cli.main import COMMANDS, DONE, entrance
from moothall.cli.options import Handler

BASH = """\
_moot() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$word"))
        return
    fi
    local options=""
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    if [[ "$word" == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _moot moot
"""
ZSH = """\
#compdef moot
autoload -U +X bashcompinit && bashcompinit
{bash}"""
SHELLS = ("bash", "zsh", "fish")


def completion(parser: ArgumentParser) -> Handler:
    """Print a completion for a shell."""
    parser.add_argument("shell", choices=SHELLS, help="the shell whose start-up file will read the output")

    def work(chosen: Namespace) -> int:
        options = {name: options_of(name) for name in COMMANDS}
        print("\n".join(_fish(options)) if chosen.shell == "fish" else _posix(chosen.shell, options), end="")
        return DONE

    return work


def options_of(name: str) -> list[tuple[str, str]]:
    """The long options of a command, with what they are for."""
    parser = ArgumentParser(prog=f"moot {name}", add_help=False)
    entrance(name)(parser)
    named = ((action.option_strings, action.help or "") for action in parser._actions)
    return [(option, text) for options, text in named for option in options if option.startswith("--")]


def _posix(shell: str, options: dict[str, list[tuple[str, str]]]) -> str:
    cases = (
        f'        {name}) options="{" ".join(option for option, _ in known)}" ;;' for name, known in options.items()
    )
    text = BASH.format(commands=" ".join(COMMANDS), cases="\n".join(cases))
    return ZSH.format(bash=text) if shell == "zsh" else text


def _fish(options: dict[str, list[tuple[str, str]]]) -> Iterator[str]:
    for name, command in COMMANDS.items():
        yield f"complete -c moot -n __fish_use_subcommand -f -a {name} -d {_quote(command.help)}"
    for name, known in options.items():
        for option, text in known:
            about = _quote(text.replace("%%", "%"))
            yield f"complete -c moot -n '__fish_seen_subcommand_from {name}' -l {option[2:]} -d {about}"
    yield ""


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
