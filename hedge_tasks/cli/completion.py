"""`hedge completion`: a script that has a shell complete commands, options and their choices."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping

from hedge_tasks.io.commands import Parser, command, show

_HOW = {
    "bash": 'eval "$(hedge completion bash)"    # in ~/.bashrc',
    "zsh": 'eval "$(hedge completion zsh)"    # in ~/.zshrc, after compinit',
    "fish": "hedge completion fish > ~/.config/fish/completions/hedge.fish",
}

_BASH = """\
_hedge() {{
  local at=hedge word words=
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$at $word" in
      {commands}) at="$at $word";;
    esac
  done
  case "$at" in
{words}
  esac
  case "$at ${{COMP_WORDS[COMP_CWORD-1]}}" in
{choices}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _hedge hedge
"""

_ZSH = """\
#compdef hedge
_hedge() {{
  local at=hedge word list=
  for word in ${{words[2,CURRENT-1]}}; do
    case "$at $word" in
      {commands}) at="$at $word";;
    esac
  done
  case "$at" in
{words}
  esac
  case "$at ${{words[CURRENT-1]}}" in
{choices}
  esac
  compadd -- ${{=list}}
  [[ $PREFIX == -* ]] || _files
}}
compdef _hedge hedge
"""

_FISH = """\
function __hedge_at
    set -l at hedge
    for word in (commandline -opc)[2..-1]
        switch "$at $word"
            case {commands}
                set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
"""


def add(commands: Parser) -> None:
    parser = command(commands, "completion", lambda arguments: _run(arguments, commands), "print shell completion")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(["to use it:", *(f"  {line}" for line in _HOW.values())])
    parser.add_argument("shell", choices=SCRIPTS, metavar="SHELL", help="bash, zsh or fish")


def _run(arguments: argparse.Namespace, parser: Parser) -> int:
    text = SCRIPTS[arguments.shell](dict(walk(parser)))
    show(arguments, {"shell": arguments.shell, "script": text}, text.rstrip("\n"))
    return 0


def walk(parser: Parser) -> Iterator[tuple[str, Parser]]:
    """Yield every command and group by its words, `hedge` first."""
    yield parser.prog, parser
    for part in parser.commands.values():
        yield from walk(part)


def _options(parser: Parser) -> list[str]:
    return [name for name, action in parser.options().items() if action.help != argparse.SUPPRESS]


def _choices(parsers: Mapping[str, Parser]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (command, option, its choices); the option is empty for choices of an argument."""
    for at, parser in parsers.items():
        for action in parser._actions:
            if action.choices:
                yield from ((at, name, list(map(str, action.choices))) for name in action.option_strings or [""])


def _cases(parsers: Mapping[str, Parser], variable: str) -> dict[str, str]:
    arguments: dict[str, list[str]] = {}
    choices = []
    for at, option, values in _choices(parsers):
        if option:
            choices.append(f'    "{at} {option}") {variable}="{" ".join(values)}";;')
        else:
            arguments.setdefault(at, []).extend(values)
    words = [
        f'    "{at}") {variable}="{" ".join([*parser.commands, *arguments.get(at, []), *_options(parser)])}";;'
        for at, parser in parsers.items()
    ]
    commands = "|".join(f'"{at}"' for at in parsers if " " in at)
    return {"commands": commands, "words": "\n".join(words), "choices": "\n".join(choices)}


def _bash(parsers: Mapping[str, Parser]) -> str:
    return _BASH.format(**_cases(parsers, "words"))


def _zsh(parsers: Mapping[str, Parser]) -> str:
    return _ZSH.format(**_cases(parsers, "list"))


def _fish(parsers: Mapping[str, Parser]) -> str:
    lines = [_FISH.format(commands=" ".join(f'"{at}"' for at in parsers if " " in at))]
    choices = {(at, option): values for at, option, values in _choices(parsers)}
    for at, parser in parsers.items():
        prefix = f"complete -c hedge -n '__hedge_at {at}'"
        lines += [f"{prefix} -f -a {name} -d {_quoted(part.summary)}" for name, part in parser.commands.items()]
        if (at, "") in choices:
            lines.append(f"{prefix} -f -a '{' '.join(choices[at, ''])}'")
        for name in _options(parser):
            values = f" -x -a '{' '.join(choices[at, name])}'" if (at, name) in choices else ""
            lines.append(f"{prefix} -l {name.removeprefix('--')}{values}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: dict[str, Callable[[Mapping[str, Parser]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
