"""`python -m bench`: one subcommand a subject; without one, all of them."""

import typer

from bench import elasticity, gateway, serving

app = typer.Typer(help="Measurements of Moonstack on this machine.", invoke_without_command=True)
app.add_typer(gateway.app, name="gateway")
app.add_typer(elasticity.app, name="elasticity")
app.add_typer(serving.app, name="serving")


@app.callback()
def main(context: typer.Context) -> None:
    """Without a subcommand: what needs no cluster, then serving on the running dev stack."""
    if context.invoked_subcommand is None:
        gateway.measure()
        elasticity.controller()
        elasticity.forecast()
        serving.cache()


if __name__ == "__main__":
    app()
