"""The cluster's own certificates: three authorities, and one certificate for each component and purpose."""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from local.cluster.layout import API_SERVICE, DNS_DOMAIN, NODE, Layout

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365
RENEW_BEFORE_DAYS = 30

ADMINISTRATORS = "moonstack:cluster-admins"
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
SERVICE_ACCOUNTS = "service-accounts"


@dataclass(frozen=True)
class Certificate:
    """One certificate: whom it names, who signs it, and the server addresses it vouches for (none: a client)."""

    name: str
    common_name: str
    groups: tuple[str, ...] = ()
    authority: str = "ca"
    addresses: tuple[str, ...] = ()


def certificates(layout: Layout) -> list[Certificate]:
    """Every certificate of the cluster; names of users and groups are those that Kubernetes' own roles are bound to."""
    service = [f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc", f".default.svc.{DNS_DOMAIN}")]
    return [
        Certificate(
            "apiserver", "kube-apiserver", addresses=(layout.node, API_SERVICE, "127.0.0.1", "localhost", *service)
        ),
        Certificate(KUBELET_CLIENT, KUBELET_CLIENT),
        Certificate("front-proxy-client", "front-proxy-client", authority="front-proxy-ca"),
        Certificate("etcd", "etcd", authority="etcd-ca", addresses=("127.0.0.1", "localhost")),
        Certificate("etcd-client", "kube-apiserver-etcd-client", authority="etcd-ca"),
        Certificate("kubelet", f"system:node:{NODE}", ("system:nodes",)),
        Certificate("kubelet-server", f"system:node:{NODE}", ("system:nodes",), addresses=(layout.node, NODE)),
        Certificate("kube-controller-manager", "system:kube-controller-manager"),
        Certificate("kube-scheduler", "system:kube-scheduler"),
        Certificate("kube-proxy", "system:kube-proxy"),
        Certificate("coredns", "moonstack:coredns"),
        Certificate("kube-router", "moonstack:kube-router"),
        Certificate("kwok", "moonstack:kwok"),
        Certificate("administrator", "moonstack-administrator", (ADMINISTRATORS,)),
        Certificate("bootstrap", "moonstack-bootstrap", ("system:masters",)),
    ]


def ensure(layout: Layout) -> None:
    """Write what is missing, about to expire, or made for other addresses; authorities and good certificates stay."""
    layout.pki.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _file(layout, SERVICE_ACCOUNTS, "key").exists():
        _create_service_account_keys(layout)
    for certificate in certificates(layout):
        issue(layout, certificate)


def issue(layout: Layout, certificate: Certificate) -> None:
    """Make the certificate unless a good one is there, and its authority unless that is there."""
    layout.pki.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not certificate_file(layout, certificate.authority).exists():
        _create_authority(layout, certificate.authority)
    if not _is_good(layout, certificate):
        _create_certificate(layout, certificate)


def certificate_file(layout: Layout, name: str) -> Path:
    """The PEM file of a certificate or an authority."""
    return _file(layout, name, "crt")


def key_file(layout: Layout, name: str) -> Path:
    """The PEM file of a private key, readable by its owner alone."""
    return _file(layout, name, "key")


def _file(layout: Layout, name: str, ending: str) -> Path:
    return layout.pki / f"{name}.{ending}"


def _is_good(layout: Layout, certificate: Certificate) -> bool:
    path = certificate_file(layout, certificate.name)
    if not path.exists() or not key_file(layout, certificate.name).exists():
        return False
    found = x509.load_pem_x509_certificate(path.read_bytes())
    lasts = found.not_valid_after_utc - _now()
    return lasts > datetime.timedelta(days=RENEW_BEFORE_DAYS) and _addresses_of(found) == set(certificate.addresses)


def _addresses_of(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in names}


def _create_authority(layout: Layout, name: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"moonstack-{name}")
    builder = _builder(subject, subject, key.public_key(), AUTHORITY_DAYS).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    usage = _usage(key_cert_sign=True, crl_sign=True, digital_signature=True)
    signed = builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())
    _write(layout, name, key, signed)


def _create_certificate(layout: Layout, certificate: Certificate) -> None:
    authority = x509.load_pem_x509_certificate(certificate_file(layout, certificate.authority).read_bytes())
    signer = serialization.load_pem_private_key(key_file(layout, certificate.authority).read_bytes(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH] + ([ExtendedKeyUsageOID.SERVER_AUTH] if certificate.addresses else [])
    builder = (
        _builder(
            _name(certificate.common_name, certificate.groups), authority.subject, key.public_key(), CERTIFICATE_DAYS
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    )
    if certificate.addresses:
        names = x509.SubjectAlternativeName([_general_name(address) for address in certificate.addresses])
        builder = builder.add_extension(names, critical=False)
    _write(layout, certificate.name, key, builder.sign(signer, hashes.SHA256()))


def _create_service_account_keys(layout: Layout) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _file(layout, SERVICE_ACCOUNTS, "pub").write_bytes(public)
    _write_key(key_file(layout, SERVICE_ACCOUNTS), key)


def _write(layout: Layout, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    _write_key(key_file(layout, name), key)
    certificate_file(layout, name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    # SEC 1, as kube-apiserver and kubeadm write it: PKCS 8 keys of service accounts are accepted too, but less often seen.
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
        target.write(text)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - datetime.timedelta(minutes=5))
        .not_valid_after(_now() + datetime.timedelta(days=days))
    )


def _name(common_name: str, groups: Sequence[str] = ()) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _usage(*, digital_signature: bool, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
