"""A certificate for 127.0.0.1, and a bundle that trusts it beside everything else."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID_DAYS = 30


@dataclass(frozen=True, slots=True)
class Identity:
    """Files a TLS server needs, and the one its clients need."""

    certificate: Path
    key: Path
    bundle: Path


def create(directory: Path) -> Identity:
    """A new self-signed certificate in ``directory``."""
    identity = Identity(directory / "bidi.pem", directory / "bidi.key", directory / "bidi-ca.pem")
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(key).public_bytes(serialization.Encoding.PEM)
    identity.certificate.write_bytes(certificate)
    identity.key.touch(mode=0o600)
    identity.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    identity.bundle.write_bytes(_system_bundle() + certificate)
    return identity


def _certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Headroom rehearsal")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([address, x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )


def _system_bundle() -> bytes:
    """SSL_CERT_FILE replaces the system's bundle, so ours must hold it too."""
    found = ssl.get_default_verify_paths().cafile
    return Path(found).read_bytes() if found else b""
