"""The sockets that the service listens on: IPv4, IPv6, both, or whatever a name resolves to."""

from __future__ import annotations

import socket

from serving.access.origins import bracketed

BOTH_FAMILIES = "::"


def listen(host: str, port: int) -> list[socket.socket]:
    """One socket for each address of `host`, all on the same port; `port` 0 is any free one. Raises
    OSError."""
    if host == BOTH_FAMILIES:
        address = (host, port)
        return [socket.create_server(address, family=socket.AF_INET6, dualstack_ipv6=True)]
    sockets: list[socket.socket] = []
    for family, address in resolve(host):
        sockets.append(socket.create_server((address, port), family=family))
        port = port or sockets[0].getsockname()[1]
    return sockets


def resolve(host: str) -> list[tuple[socket.AddressFamily, str]]:
    """The addresses of a name, IPv4 first, each once. Raises OSError."""
    entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = {(family, str(address[0])) for family, _, _, _, address in entries}
    return sorted(addresses, key=lambda pair: (pair[0] != socket.AF_INET, pair[1]))


def make_url(scheme: str, host: str, sockets: list[socket.socket]) -> str:
    """The address to print: the host as it was given, and the port."""
    return f"{scheme}://{bracketed(host)}:{sockets[0].getsockname()[1]}"
