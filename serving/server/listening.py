"""The sockets that the service listens on: IPv4, IPv6, both, or whatever a name resolves to."""

from __future__ import annotations

import socket

from serving.access.origins import bracketed

BOTH_FAMILIES = "::"
# libuv (1.46 and later, in uvloop) accepts one connection of a socket in each pass of the event
# loop, and a pass of a busy service lasts 0.1 s and more.
ACCEPTS_PER_PASS = 8


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


def repeat(sockets: list[socket.socket]) -> list[socket.socket]:
    """`sockets`, each ACCEPTS_PER_PASS times, so that an event loop accepts as many connections in
    one pass."""
    copies = [listening.dup() for listening in sockets for _ in range(ACCEPTS_PER_PASS - 1)]
    return [*sockets, *copies]


def make_url(scheme: str, host: str, sockets: list[socket.socket]) -> str:
    """The address to print: the host as it was given, and the port."""
    return f"{scheme}://{bracketed(host)}:{sockets[0].getsockname()[1]}"
