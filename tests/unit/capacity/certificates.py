"""What the API server and the controller know of each other."""

import ssl
from pathlib import Path

from components.scaling.certificates import KeyPair, new_authority, new_certificate


class Certificates:
    """What the API server and the controller know of each other: serving certificate, front-proxy CA and client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.serving_ca, self.proxy_ca = new_authority("serving"), new_authority("front-proxy")
        self.serving = self._write("tls", new_certificate(self.serving_ca, ["localhost"]))

    def client(self, name: str, authority: KeyPair | None = None) -> ssl.SSLContext:
        """How a client with that common name calls the metrics API."""
        certificate, key = self._write(name, new_certificate(authority or self.proxy_ca, [name], client=True))
        context = self.anonymous()
        context.load_cert_chain(certificate, key)
        return context

    def anonymous(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.serving_ca.certificate)

    def _write(self, name: str, pair: KeyPair) -> tuple[Path, Path]:
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        certificate.write_text(pair.certificate)
        key.write_text(pair.key)
        return certificate, key
