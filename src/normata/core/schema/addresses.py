"""Email and web addresses: when two are the same, and which are valid."""

from __future__ import annotations

import re
import string

import idna

LONGEST_EMAIL = 320  # characters
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_ASCII_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # RFC 1123, section 2.1
_LONGEST_DOMAIN = 253  # RFC 1035, section 2.3.4, without the final dot


def email_key(address: str) -> str:
    """The key of an email address: equal only for the same address. People are looked up only by it.

    The local part stays as written, and the domain becomes A-labels (IDNA 2008, RFC 5891), both with ASCII letters in
    lower case. Nothing else is folded: ß and ss, or a full-width k and k, are different people at providers. An address
    without such a form stays as written.
    """
    lowered = address.translate(_LOWER)
    local, at, domain = lowered.rpartition("@")
    if domain.isascii():
        return lowered
    try:
        key = f"{local}{at}{'.'.join(map(_a_label, domain.split('.')))}"
    except idna.IDNAError:
        return lowered
    return key if len(key) <= LONGEST_EMAIL else lowered


def email_spellings(address: str) -> set[str]:
    """All spellings of an address, with its domain as written, as A-labels, and as U-labels."""
    key = email_key(address)
    local, at, domain = key.rpartition("@")
    try:
        readable = ".".join(idna.ulabel(label) if label.startswith("xn--") else label for label in domain.split("."))
    except idna.IDNAError:
        return {address, key}
    return {address, key, f"{local}{at}{readable}"}


def is_domain(domain: str) -> bool:
    """Whether a text is a host name: labels of letters, digits and hyphens, or valid by IDNA 2008."""
    try:
        labels = [_a_label(label) for label in domain.translate(_LOWER).split(".")]
        for label in labels:
            if label.startswith("xn--"):
                idna.ulabel(label)
    except idna.IDNAError:
        return False
    return all(map(_ASCII_LABEL.fullmatch, labels)) and len(".".join(labels)) <= _LONGEST_DOMAIN


def _a_label(label: str) -> str:
    # Each label alone, split at full stops only: the package would accept other dots as well.
    return label if label.isascii() else idna.alabel(label).decode()
