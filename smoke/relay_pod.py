"""Runs inside the cluster: passes bytes between its own port and one address; standard library alone.

Arguments: the port to listen on, the host and the port to connect to.
"""

import asyncio
import sys
from contextlib import suppress


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Bytes from one side to the other, until it ends."""
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def main(listen: int, host: str, port: int) -> None:
    """Serve for ever."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(host, port)
        except OSError as error:
            print(f"no connection to {host}:{port}: {error}", file=sys.stderr, flush=True)
            writer.close()
            return
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    server = await asyncio.start_server(relay, "0.0.0.0", listen)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
