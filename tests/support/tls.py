"""Certificates for services of the tests, signed by themselves or by an authority of the tests."""

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def certificate(folder: Path, *names: str) -> Path:
    """Write a new key and its certificate for *names* to one file, and return that."""
    key = ec.generate_private_key(ec.SECP256R1())
    path = folder / "both.pem"
    path.write_bytes(_signed(key, names, _name(names[0]), key, ca=True) + _private(key))
    return path


class Authority:
    """Signs certificates for any name; a client trusts it through the file *folder*/ca.pem."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "ca.pem"
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("an authority of the tests")
        self.file.write_bytes(_signed(self._key, (), self._name, self._key, ca=True))
        self._contexts: dict[str, ssl.SSLContext] = {}

    def context(self, host: str) -> ssl.SSLContext:
        if host not in self._contexts:
            key = ec.generate_private_key(ec.SECP256R1())
            path = self._folder / f"{host}.pem"
            path.write_bytes(_signed(key, (host,), self._name, self._key) + _private(key))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(path)
            self._contexts[host] = context
        return self._contexts[host]


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed(
    key: ec.EllipticCurvePrivateKey,
    names: tuple[str, ...],
    issuer: x509.Name,
    by: ec.EllipticCurvePrivateKey,
    *,
    ca: bool = False,
) -> bytes:
    names_ext = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    builder = (
        x509.CertificateBuilder()
        .subject_name(issuer if key is by else _name(names[0]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_START)
        .not_valid_after(_START + datetime.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(names_ext, critical=False)
    return builder.sign(by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
