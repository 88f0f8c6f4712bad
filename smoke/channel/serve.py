"""Runs a channel on a port, with TLS by a certificate made on the spot where asked for."""

import asyncio
import datetime
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from smoke.channel.app import Channel


@asynccontextmanager
async def serve(
    channel: Channel, host: str = "127.0.0.1", port: int = 0, tls: Path | None = None
) -> AsyncIterator[str]:
    """The channel's base URL, served as long as the context lasts. `tls` is a folder for `tls.crt` and `tls.key`."""
    listener = socket.create_server((host, port))
    if tls is not None:
        make_certificate(tls, host)
    config = uvicorn.Config(
        channel.app,
        log_level="critical",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        ssl_certfile=None if tls is None else str(tls / "tls.crt"),
        ssl_keyfile=None if tls is None else str(tls / "tls.key"),
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        yield f"{'https' if tls else 'http'}://{host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        await task
        listener.close()


def make_certificate(folder: Path, host: str) -> None:
    """A self-signed certificate for `host` and localhost, valid for a day; the key is readable by its owner alone."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "moonstack channel for tests")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(host))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_file = folder / "tls.key"
    key_file.touch(mode=0o600)
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
