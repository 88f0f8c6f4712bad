"""The command line: `python -m capacity …`."""

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import typer

from capacity.act.actor import MANAGER
from capacity.act.memory import expire_floors
from capacity.config import ControllerConfig
from capacity.kube import Access, Kube
from capacity.service import Listen, serve
from capacity.simulate.cli import lint, score, simulate
from rules.floor import RENEWAL_LIMIT_SECONDS

app = typer.Typer(
    help="Capacity: metrics for the HPA, floors, warm pods; and their dry run.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(simulate)
app.command()(lint)
app.command()(score)

ConfigFile = Annotated[
    Path, typer.Option("--config", help="The controller's configuration, as mounted in the cluster.")
]


@app.command()
def run(
    config: ConfigFile,
    certificate: Annotated[Path, typer.Option(help="Serving certificate of the metrics API.")],
    key: Annotated[Path, typer.Option(help="Its private key.")],
) -> None:
    """Run one replica of the controller inside the cluster."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    asyncio.run(serve(ControllerConfig.load(config), Access.in_cluster(), Listen(certificate=certificate, key=key)))


@app.command("expire-floors")
def expire(config: ConfigFile) -> None:
    """Lower by one each floor that the controller has not renewed for ten minutes."""
    namespace = ControllerConfig.load(config).namespace

    async def once() -> list[str]:
        kube = Kube(Access.in_cluster())
        try:
            return await expire_floors(kube, namespace, RENEWAL_LIMIT_SECONDS, MANAGER)
        finally:
            await kube.close()

    for line in asyncio.run(once()):
        typer.echo(line)


if __name__ == "__main__":
    app()
