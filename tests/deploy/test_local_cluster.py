"""Workers that the server starts: other users of the machine can reach their ports, no more."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest
from distributed import Security
from distributed.core import rpc

from scant.runs.workers.cluster import Cluster


async def heard(address: str, key: Security) -> bool:
    """Whether what listens at an address answers to who has this key."""
    try:
        async with rpc(address, connection_args=key.get_connection_args("client")) as other:
            await asyncio.wait_for(other.identity(), 10)
    except (OSError, RuntimeError):
        return False
    return True


def answers_without_a_key(port: int) -> bytes:
    """What a port of this machine answers to who asks for a page, plainly or over TLS."""
    open_to_all = ssl.create_default_context()
    open_to_all.check_hostname, open_to_all.verify_mode = False, ssl.CERT_NONE
    answer = b""
    for wrap in (lambda plain: plain, open_to_all.wrap_socket):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 10) as plain:
            plain.settimeout(10)
            with wrap(plain) as asking:
                asking.sendall(b"GET / HTTP/1.0\r\n\r\n")
                answer += asking.recv(100)
    return answer


def test_only_who_has_the_servers_key_is_heard_on_any_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scheduler and worker talk to nobody else, and no port shows a page."""
    monkeypatch.delenv("SCANT_SCHEDULER", raising=False)

    def listening() -> set[int]:
        ports = set()
        for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
            with suppress(psutil.NoSuchProcess, FileNotFoundError):  # one of an earlier test ends
                sockets = process.net_connections("tcp")
                ports |= {s.laddr.port for s in sockets if s.status == psutil.CONN_LISTEN}
        return ports

    async def story() -> None:
        before = listening()
        cluster = await Cluster.connect(workers=1)
        ports = listening() - before
        assert len(ports) == 3  # scheduler, nanny and worker
        for port in ports:
            assert await asyncio.to_thread(answers_without_a_key, port) == b""
        answers = await cluster.client.run(os.getpid)
        assert os.getpid() not in answers.values()
        for address in (cluster.local.scheduler_address, *answers):
            assert await heard(address, cluster.local.security)
            assert not await heard(address, Security.temporary())
            assert not await heard(address.replace("tls://", "tcp://"), Security())
        await cluster.close()

    with ThreadPoolExecutor(1) as apart:  # a browser of other tests has a loop on this thread
        apart.submit(asyncio.run, story()).result()
