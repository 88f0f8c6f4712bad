"""channel: the channel for tests as a server of its own."""

import asyncio
import secrets
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr, ValidationError

from smoke.channel.app import Channel
from smoke.channel.plan import ChannelPlan, KeyPlan
from smoke.channel.serve import serve
from smoke.console import console, one_line_errors, read
from smoke.errors import PermanentError


def channel(
    folder: Annotated[Path, typer.Argument(help="Where certificate and generated key are kept; made if missing.")],
    port: Annotated[int, typer.Option(help="Port on the loopback interface; 0 takes a free one.")] = 0,
    model: Annotated[list[str] | None, typer.Option(help="Model name; may be given several times.")] = None,
    plan: Annotated[Path | None, typer.Option(help="JSON with models, keys, quotas, latency and faults.")] = None,
    upstream: Annotated[str | None, typer.Option(help="Base URL of a real engine that answers.")] = None,
) -> None:
    """Serve an OpenAI-compatible channel for tests over TLS until interrupted; no key is printed."""
    with one_line_errors():
        made = read_plan(plan) if plan else generated(folder, model or ["test-model"])
        made = made.model_copy(update={"upstream": upstream or made.upstream})
        try:
            asyncio.run(_serve(made, folder, port))
        except KeyboardInterrupt:
            console.print("channel stopped")


def read_plan(path: Path) -> ChannelPlan:
    """A plan from a JSON file. Raises PermanentError naming the first field that is wrong, never a value."""
    fix = "see smoke/channel/plan.py for the fields"
    try:
        return ChannelPlan.model_validate_json(read(path, fix))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise PermanentError(f"{path}: {where}: {first['msg']}", fix) from None


def generated(folder: Path, models: list[str]) -> ChannelPlan:
    """A plan with one key, made on the spot and kept in `<folder>/key`, readable by its owner alone."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / "key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(f"sk-{secrets.token_hex(24)}")
    return ChannelPlan(models=tuple(models), keys=(KeyPlan(id="test", value=SecretStr(path.read_text())),))


async def _serve(plan: ChannelPlan, folder: Path, port: int) -> None:
    async with serve(Channel(plan), port=port, tls=folder) as url:
        console.print(f"channel at {url} (CA: {folder / 'tls.crt'}; models: {', '.join(plan.models)})")
        await asyncio.Event().wait()
