"""The serving certificate of the metrics API and the authority that signs it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_YEARS: Final = 10
CERTIFICATE_YEARS: Final = 2
"""A new one is made each calendar year, so the one in use is valid for a year more."""
_BACKDATED: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Certificate and private key, PEM."""

    certificate: str
    key: str


def new_authority(name: str) -> KeyPair:
    """A self-signed authority (P-256) that signs nothing but certificates."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"{name} authority")
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    certificate = (
        _builder(subject, subject, key, AUTHORITY_YEARS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def new_certificate(authority: KeyPair, hosts: list[str], *, client: bool = False) -> KeyPair:
    """A serving certificate for the host names, or a client's. Raises ValueError when the authority can't be read."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer = x509.load_pem_x509_certificate(authority.certificate.encode())
    signing_key = serialization.load_pem_private_key(authority.key.encode(), password=None)
    if not isinstance(signing_key, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is no EC key")
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    certificate = (
        _builder(_name(hosts[0]), signer.subject, key, CERTIFICATE_YEARS)
        .add_extension(names, critical=False)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .sign(signing_key, hashes.SHA256())
    )
    return _pair(certificate, key)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, years: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=365 * years))
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode())
