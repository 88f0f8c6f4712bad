"""How Kubernetes spells label values, label keys and extended resources (k8s.io/apimachinery `validation`)."""

import re
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LONGEST_NAME: Final = 63
LONGEST_DOMAIN: Final = 253
_QUOTA: Final = "requests."
"""A ResourceQuota puts this before an extended resource's name, and the whole must be a label key still."""


def label_value_fault(text: str) -> str | None:
    """What is wrong with a label's or a taint's value and the fix, as `limit; fix`."""
    if text and (len(text) > LONGEST_NAME or not _NAME.fullmatch(text)):
        return f"is no label value; write at most {LONGEST_NAME} letters, digits and -_. with a letter or digit at both ends"
    return None


def label_key_fault(text: str) -> str | None:
    """What is wrong with the key of a label, an annotation or a taint (`name` or `domain/name`), as `limit; fix`."""
    domain, slash, name = text.rpartition("/")
    if slash and (len(domain) > LONGEST_DOMAIN or not _DOMAIN.fullmatch(domain)):
        return f"has no DNS name of at most {LONGEST_DOMAIN} characters before its slash; write it as example.com/name"
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        return (
            f"is no label key; write name or example.com/name, the name with at most {LONGEST_NAME} letters, digits and "
            "-_. and a letter or digit at both ends"
        )
    return None


def extended_resource_fault(text: str) -> str | None:
    """What is wrong with an extended resource's name, which always has a domain, not Kubernetes' own, as `limit; fix`."""
    domain, slash, _ = text.rpartition("/")
    if not slash:
        return "is no extended resource; write it with its domain, such as rdma/hca_shared_devices_a"
    if domain == "kubernetes.io" or domain.endswith(".kubernetes.io") or domain.startswith(_QUOTA):
        return f"is no extended resource: {domain} is Kubernetes' own; name the one of the device plugin"
    return label_key_fault(text) or (
        f"has more than {LONGEST_DOMAIN} characters before its slash; shorten it"
        if len(_QUOTA + domain) > LONGEST_DOMAIN
        else None
    )
