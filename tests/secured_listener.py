"""A listener of the tests' broker that lets nobody in without TLS and a password."""

from __future__ import annotations

import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from headrace.spark.java import find_java

HOST = "127.0.0.1"
USER, PASSWORD = "ada", "lovelace"
_STORE_PASSWORD = "changeit"
_OWN = "listener.name.secured."


@dataclass(frozen=True)
class SecuredListener:
    """Beside the listener for everybody, at ``plain_port``."""

    plain_port: int
    controller_port: int
    port: int
    store: Path
    certificate: Path
    """What clients have to trust."""

    @classmethod
    def make(cls, directory: Path) -> SecuredListener:
        plain_port, controller_port, port = _free_ports(3)
        store, certificate = make_certificate(directory)
        return cls(plain_port, controller_port, port, store, certificate)

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def broker_settings(self) -> dict[str, str]:
        plain, secured = f"PLAINTEXT://{HOST}:{self.plain_port}", f"SECURED://{HOST}:{self.port}"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return {
            "controller.quorum.voters": f"1@{HOST}:{self.controller_port}",
            "listeners": f"{plain},{secured},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"{plain},{secured}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
            f"{_OWN}sasl.enabled.mechanisms": "PLAIN",
            f"{_OWN}plain.sasl.jaas.config": f'{module} required user_{USER}="{PASSWORD}";',
            f"{_OWN}ssl.keystore.type": "PKCS12",
            f"{_OWN}ssl.keystore.location": str(self.store),
            f"{_OWN}ssl.keystore.password": _STORE_PASSWORD,
        }

    @property
    def client_settings(self) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.certificate),
        }


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """Returns a key store for a broker, and its certificate."""
    keytool = find_java().home / "bin" / "keytool"
    store, certificate = directory / "broker.p12", directory / "broker.pem"
    own = ("-keystore", str(store), "-storetype", "PKCS12", "-storepass", _STORE_PASSWORD, "-alias", "broker")
    pair = ("-keyalg", "EC", "-dname", "CN=broker", "-ext", f"san=ip:{HOST}", "-validity", "2")
    for arguments in (("-genkeypair", *own, *pair), ("-exportcert", "-rfc", *own, "-file", str(certificate))):
        subprocess.run([str(keytool), "-J-XX:TieredStopAtLevel=1", *arguments], check=True, capture_output=True)
    return store, certificate


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind((HOST, 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports
