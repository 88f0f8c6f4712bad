"""`python -m smoke`: proof on a live stack."""

import typer

from smoke.commands.channel import channel
from smoke.commands.diagnose import doctor, print_runbooks
from smoke.commands.drill import drill
from smoke.commands.prove import compare, promote, run
from smoke.commands.pulse import pulse
from smoke.preflight.cli import preflight

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for command in (preflight, run, compare, promote, pulse, doctor, drill, channel):
    app.command()(command)
app.command("runbooks")(print_runbooks)


if __name__ == "__main__":
    app(prog_name="python -m smoke")
