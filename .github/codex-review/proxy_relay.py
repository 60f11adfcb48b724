#!/usr/bin/env python3
"""Host relay: accepts connections from one network and pipes each to one fixed target.

Usage: proxy_relay.py --listen-host ADDRESS [--listen-port PORT] --allow-cidr CIDR [--target-host ADDRESS]
       --target-port PORT [--ready-file PATH]
       proxy_relay.py --check ADDRESS PORT

The ready file is created exclusively with mode 0600 and holds the listening port. ``--check`` is the health check: it
succeeds when the relay at that address accepts a connection and keeps it open, so when the target accepts one too.
"""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import os
import socket
import sys
import threading

CHUNK = 65536


def arguments(argv: list[str]) -> argparse.Namespace:
    """Parsed and checked command line."""
    parser = argparse.ArgumentParser(description="pipe connections of one network to one fixed target")
    parser.add_argument("--listen-host", required=True)
    parser.add_argument("--listen-port", type=_port, default=0)
    parser.add_argument("--allow-cidr", type=ipaddress.ip_network, required=True)
    parser.add_argument("--target-host", default="127.0.0.1")
    parser.add_argument("--target-port", type=_port, required=True)
    parser.add_argument("--ready-file")
    return parser.parse_args(argv)


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"invalid port {text}")
    return port


def allowed(peer: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    """May this address connect? IPv4 addresses in IPv6 clothing count as IPv4."""
    address = ipaddress.ip_address(peer.split("%", 1)[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address) in network


def pipe(source: socket.socket, sink: socket.socket) -> None:
    """Copy until the source ends, then end only the sink's receiving side: the other direction may go on."""
    try:
        while True:
            data = source.recv(CHUNK)
            if not data:
                break
            sink.sendall(data)
    except OSError:
        _shut(source, socket.SHUT_RDWR)
    _shut(sink, socket.SHUT_WR)


def _shut(connection: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):  # the other direction may have closed it already
        connection.shutdown(how)


def serve_one(client: socket.socket, target: tuple[str, int]) -> None:
    """Connect one accepted client to the target and copy both ways until both ends are done."""
    with client:
        try:
            upstream = socket.create_connection(target, timeout=30)
        except OSError:
            return
        with upstream:
            upstream.settimeout(None)
            back = threading.Thread(target=pipe, args=(upstream, client), daemon=True)
            back.start()
            pipe(client, upstream)
            back.join()


def announce(path: str, port: int) -> None:
    """Create the ready file; fails if anything exists under that name."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{port}\n")


def healthy(address: str, port: int) -> bool:
    """Does the relay at this address reach its target? It closes connections at once when it does not."""
    try:
        with socket.create_connection((address, port), timeout=3) as connection:
            connection.settimeout(1)
            connection.recv(1)
    except socket.timeout:  # noqa: UP041 - a class of its own before Python 3.10
        return True
    except OSError:
        return False
    return False


def main(argv: list[str]) -> int:
    """Listen until killed."""
    if len(argv) == 3 and argv[0] == "--check":
        return 0 if healthy(argv[1], _port(argv[2])) else 1
    options = arguments(argv)
    family = socket.AF_INET6 if ":" in options.listen_host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.listen_host, options.listen_port))
        listener.listen(64)
        if options.ready_file:
            announce(options.ready_file, listener.getsockname()[1])
        while True:
            client, peer = listener.accept()
            if not allowed(peer[0], options.allow_cidr):
                client.close()
                continue
            target = (options.target_host, options.target_port)
            threading.Thread(target=serve_one, args=(client, target), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
