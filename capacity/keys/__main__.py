"""`python -m capacity.keys --config FILE`: the key agent inside the cluster."""

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import typer

from capacity.keys.agent import KeyAgent
from capacity.keys.config import AgentConfig
from capacity.kube import Access, Kube


def main(config: Annotated[Path, typer.Option(help="The agent's configuration, as mounted in the cluster.")]) -> None:
    """Keep the gateway's list of client keys true to the clock and to each key's tokens of the day."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    asyncio.run(KeyAgent(AgentConfig.load(config), Kube(Access.in_cluster())).run())


if __name__ == "__main__":
    typer.run(main)
