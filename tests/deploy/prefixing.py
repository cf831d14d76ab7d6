"""A proxy that shows a server under a path, as nginx or jupyter-server-proxy does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown_under(prefix: str, port: int, target: int, cut: bool, header: str = "") -> Iterator[None]:
    """Pass connections on to a port of this machine while the context lasts.

    Args:
        prefix: Path before every address; whatever has another one is answered by 404.
        port: To listen on.
        target: The server's.
        cut: Whether the path is cut off.
        header: Under which the server hears of it; "" for none.
    """

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, _, rest = head.partition("\r\n")
            method, path, version = first.split(" ")
            if not path.startswith(prefix):
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                return
            path = (path.removeprefix(prefix) or "/") if cut else path
            lines = [line for line in rest.split("\r\n") if line]
            if not any(line.lower().startswith("upgrade:") for line in lines):
                lines = [line for line in lines if not line.lower().startswith("connection:")]
                lines.append("Connection: close")
            if header:
                lines.append(f"{header}: {prefix}")
            inner, outer = await asyncio.open_connection("127.0.0.1", target)
            asked = [f"{method} {path} {version}", *lines, "", ""]
            outer.write("\r\n".join(asked).encode("latin-1"))
            await asyncio.gather(pump(reader, outer), pump(inner, writer))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # either side has gone, or the test has ended
        finally:
            writer.close()

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while part := await source.read(2**16):
                sink.write(part)
                await sink.drain()
        finally:
            sink.close()

    ready, ends = threading.Event(), list[Callable[[], object]]()

    async def serve() -> None:
        end, loop = asyncio.Event(), asyncio.get_running_loop()
        ends.append(lambda: loop.call_soon_threadsafe(end.set))
        async with await asyncio.start_server(connect, "127.0.0.1", port):
            ready.set()
            await end.wait()

    # Playwright has this thread's loop.
    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(20)
    try:
        yield
    finally:
        ends[0]()
        thread.join(timeout=20)
