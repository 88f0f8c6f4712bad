"""The cluster's certificates and kubeconfigs."""

import base64
import ipaddress
import json
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from local.cluster import kubeconfig, pki
from local.cluster.layout import Layout


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setenv("MOONSTACK_STATE", str(tmp_path))
    return Layout(tmp_path, ipaddress.IPv4Network("10.203.0.0/30"), 8443)


def _load(layout: Layout, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pki.certificate_file(layout, name).read_bytes())


def _names(certificate: x509.Certificate) -> set[str]:
    extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return {str(name.value) for name in extension.value}


def _purposes(certificate: x509.Certificate) -> set[x509.ObjectIdentifier]:
    return set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_every_certificate_is_signed_by_its_authority(layout: Layout):
    pki.ensure(layout)
    for certificate in pki.certificates(layout):
        _load(layout, certificate.name).verify_directly_issued_by(_load(layout, certificate.authority))


def test_etcd_trusts_no_client_of_the_cluster(layout: Layout):
    pki.ensure(layout)
    for name in ("administrator", "kubelet", "front-proxy-client"):
        with pytest.raises(ValueError):
            _load(layout, name).verify_directly_issued_by(_load(layout, "etcd-ca"))


def test_the_api_server_answers_to_every_name_that_it_is_called_by(layout: Layout):
    pki.ensure(layout)
    names = _names(_load(layout, "apiserver"))
    assert {
        "10.203.0.2",
        "10.96.0.1",
        "localhost",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    } <= names


def test_a_client_cannot_pose_as_a_server(layout: Layout):
    pki.ensure(layout)
    assert _purposes(_load(layout, "administrator")) == {ExtendedKeyUsageOID.CLIENT_AUTH}
    assert ExtendedKeyUsageOID.SERVER_AUTH in _purposes(_load(layout, "kubelet-server"))


def test_the_kubelet_is_known_as_its_node(layout: Layout):
    pki.ensure(layout)
    assert _load(layout, "kubelet").subject.rfc4514_string() == "CN=system:node:local-0,O=system:nodes"


def test_keys_are_readable_by_their_owner_alone(layout: Layout):
    pki.ensure(layout)
    keys = list(layout.pki.glob("*.key"))
    assert len(keys) > 10
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}


def test_a_second_run_changes_nothing(layout: Layout):
    pki.ensure(layout)
    before = {path.name: path.read_bytes() for path in layout.pki.iterdir()}
    pki.ensure(layout)
    assert {path.name: path.read_bytes() for path in layout.pki.iterdir()} == before


def test_other_addresses_make_new_certificates_of_the_same_authority(layout: Layout):
    pki.ensure(layout)
    authority, client = _load(layout, "ca"), _load(layout, "administrator")
    moved = Layout(layout.state, ipaddress.IPv4Network("10.204.0.0/30"), 8443)
    pki.ensure(moved)
    assert "10.204.0.2" in _names(_load(moved, "apiserver"))
    assert _load(moved, "ca") == authority
    assert _load(moved, "administrator") == client


def test_a_certificate_that_is_about_to_expire_is_renewed(layout: Layout, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pki, "CERTIFICATE_DAYS", 29)
    pki.ensure(layout)
    old = _load(layout, "etcd")
    monkeypatch.setattr(pki, "CERTIFICATE_DAYS", 365)
    pki.ensure(layout)
    assert _load(layout, "etcd") != old


def test_an_authority_of_its_own_is_made_for_a_certificate_that_names_one(layout: Layout):
    wanted = pki.Certificate("gateway", "gateway", authority="gateway-ca", addresses=("localhost", "127.0.0.1"))
    pki.issue(layout, wanted)
    _load(layout, "gateway").verify_directly_issued_by(_load(layout, "gateway-ca"))
    assert _names(_load(layout, "gateway")) == {"localhost", "127.0.0.1"}


def test_the_users_kubeconfig_carries_its_keys_and_is_for_its_owner_alone(layout: Layout):
    pki.ensure(layout)
    kubeconfig.write_all(layout)
    path = layout.state / "kubeconfig"
    document = json.loads(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert document["clusters"][0]["cluster"]["server"] == "https://10.203.0.2:6443"
    key = base64.b64decode(document["users"][0]["user"]["client-key-data"])
    assert key == pki.key_file(layout, "administrator").read_bytes()
