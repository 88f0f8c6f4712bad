"""`python -m bench`: one subcommand a subject; without one, all of them."""

from collections.abc import Callable

import typer

from bench import elasticity, gateway, preview, serving

app = typer.Typer(help="Measurements of Moonstack on this machine.", invoke_without_command=True, add_completion=False)
app.add_typer(gateway.app, name="gateway")
app.add_typer(elasticity.app, name="elasticity")
app.add_typer(serving.app, name="serving")
app.command("preview")(preview.measure)


@app.callback()
def main(context: typer.Context) -> None:
    """Without a subcommand: what needs no cluster, then serving on the running dev stack; exit with the worst code."""
    if context.invoked_subcommand is None:
        subjects = (gateway.measure, elasticity.controller, elasticity.forecast, preview.measure, serving.cache)
        raise typer.Exit(max(_code(subject) for subject in subjects))


def _code(subject: Callable[[], None]) -> int:
    """A subject's exit code: each ends with one, and the next is measured all the same."""
    try:
        subject()
    except typer.Exit as end:
        return end.exit_code
    return 0


if __name__ == "__main__":
    app()
