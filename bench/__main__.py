"""`python -m bench`: one subcommand a subject; without one, what needs no cluster and takes a minute."""

import typer

from bench import elasticity, gateway, serving

app = typer.Typer(help="Measurements of Moonstack on this machine.", invoke_without_command=True)
app.add_typer(gateway.app, name="gateway")
app.add_typer(elasticity.app, name="elasticity")
app.add_typer(serving.app, name="serving")


@app.callback()
def main(context: typer.Context) -> None:
    """Without a subcommand: the gateway's cost a request."""
    if context.invoked_subcommand is None:
        gateway.measure()


if __name__ == "__main__":
    app()
