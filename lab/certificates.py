"""Certificates for the lab and for tests: an authority that signs what it is asked to, as PEM files."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
# Far from any real day on both sides.
BEGIN, END = datetime(2020, 1, 1, tzinfo=UTC), datetime(2090, 1, 1, tzinfo=UTC)


class Files(NamedTuple):
    """Where a certificate and its key lie, as texts."""

    certificate: str
    key: str


class Authority:
    """Signs certificates, and is trusted by whoever has its file."""

    def __init__(self, folder: Path, name: str = "authority", *, by: Authority | None = None) -> None:
        """Signed by itself, or by another one, as an intermediate."""
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        signer = by or self
        made = _builder(self._name, signer._name, self._key, BEGIN, END)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        made = made.add_extension(usage, critical=True)
        key_id = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        made = made.add_extension(key_id, critical=False)
        if by is not None:
            made = made.add_extension(by._key_id, critical=False)
        self._key_id: x509.AuthorityKeyIdentifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(
            self._key.public_key()
        )
        self.trust = str(folder / f"{name}.pem")
        Path(self.trust).write_bytes(_pem(made.sign(signer._key, hashes.SHA256())))

    def issue(
        self,
        name: str,
        *,
        host: str = HOST,
        end: datetime = END,
        begin: datetime = BEGIN,
        password: bytes = b"",
    ) -> Files:
        """A certificate for a host (a name or an address) in files that are called so."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _builder(_named(name), self._name, key, begin, end)
        try:
            who: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            who = x509.DNSName(host)
        made = made.add_extension(x509.SubjectAlternativeName([who]), critical=False)
        made = made.add_extension(self._key_id, critical=False)
        files = Files(str(self._folder / f"{name}.pem"), str(self._folder / f"{name}.key"))
        Path(files.certificate).write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        Path(files.key).write_bytes(_key(key, password))
        return files

    def expired(self, name: str) -> Files:
        """One that was good until it ended."""
        return self.issue(name, end=BEGIN + timedelta(days=1))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(name: x509.Name, by: x509.Name, key: Any, begin: datetime, end: datetime) -> Any:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(by)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: Any, password: bytes) -> bytes:
    how: Any = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    made: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
    return made
