"""Certificates for an upstream on this machine, made for each run."""

import ssl
from datetime import datetime
from pathlib import Path

import trustme


class Authority:
    """A certificate authority of the tests' own."""

    def __init__(self) -> None:
        self._authority = trustme.CA()

    def server_context(
        self, name: str = "127.0.0.1", begin: datetime | None = None, end: datetime | None = None
    ) -> ssl.SSLContext:
        """Return a server's context with a certificate for that name, valid from `begin` to `end`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(name, not_before=begin, not_after=end).configure_cert(context)
        return context

    def write_server(self, folder: Path, name: str = "127.0.0.1") -> dict[str, str]:
        """Write a server's certificate and key; return them as settings of `[listen]`."""
        issued = self._authority.issue_cert(name)
        cert, key = folder / "server.pem", folder / "server.key"
        issued.cert_chain_pems[0].write_to_path(cert)
        issued.private_key_pem.write_to_path(key)
        key.chmod(0o600)
        return {"tls_cert": str(cert), "tls_key": str(key)}

    @property
    def pem(self) -> str:
        """The authority's own certificate."""
        return self._authority.cert_pem.bytes().decode()

    def write(self, folder: Path) -> str:
        """Write that for `upstream.ca_file`."""
        file = folder / "ca.pem"
        file.write_text(self.pem)
        return str(file)
