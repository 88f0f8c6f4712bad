"""`python -m local completion`: what the shell offers after `python -m smoke` and the other commands of the checkout.

Typer's own completion is for programs with a name of one word; these are modules of one Python.
"""

import importlib
import importlib.util
import sys
from typing import Annotated, Any, Final

import typer
from typer._completion_classes import completion_init
from typer.completion import shell_complete

MODULES: Final = ("bench", "capacity", "local", "policies", "rotation", "settings", "smoke")
_SCRIPT: Final = r"""_moonstack() {
  local IFS=$'\n'
  [[ ${COMP_WORDS[1]} == -m ]] || return 0
  if ((COMP_CWORD == 2)); then
    COMPREPLY=($(IFS=' '; compgen -W "MODULES" -- "${COMP_WORDS[2]}"))
  elif [[ " MODULES " == *" ${COMP_WORDS[2]} "* ]]; then
    COMPREPLY=($(env COMP_WORDS="${COMP_WORDS[*]:2}" COMP_CWORD=$((COMP_CWORD - 2)) \
      "${COMP_WORDS[0]}" -m local.completion --of "${COMP_WORDS[2]}" 2>/dev/null))
  fi
}
complete -o default -F _moonstack python python3
""".replace("MODULES", " ".join(MODULES))


def completion(
    of: Annotated[
        str | None, typer.Option(help="Module whose words to offer, by the shell's variables.", hidden=True)
    ] = None,
) -> None:
    """Print completion for bash: eval "$(.venv/bin/python -m local completion)"."""
    if of is None:
        sys.stdout.write(_SCRIPT)
    elif of in MODULES:
        completion_init()
        shell_complete(command_of(of), {}, of, "", "complete_bash")


def command_of(module: str) -> Any:
    """The command line of `python -m <module>`; where `__main__` runs at import, its sibling `cli` has it."""
    name = f"{module}.cli" if importlib.util.find_spec(f"{module}.cli") else f"{module}.__main__"
    return typer.main.get_command(importlib.import_module(name).app)


if __name__ == "__main__":  # asked at each Tab, so without the imports of the other commands
    typer.run(completion)
