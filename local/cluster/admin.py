"""The API server as the cluster's administrator sees it."""

import ssl

import httpx

from local.cluster.layout import layout
from local.cluster.pki import certificate_file, key_file


def trust() -> ssl.SSLContext:
    """The cluster's authority, and the administrator's certificate."""
    here = layout()
    context = ssl.create_default_context(cafile=str(certificate_file(here, "ca")))
    context.load_cert_chain(certificate_file(here, "administrator"), key_file(here, "administrator"))
    return context


def client() -> httpx.Client:
    """Plain requests, also to pods through the server's proxy; to be closed by the caller."""
    return httpx.Client(base_url=layout().server, verify=trust(), timeout=10, trust_env=False)
