"""Where workers call the driver, and what wakes the driver up."""

from __future__ import annotations

import contextlib
import queue
import secrets
import sys
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, Pipe

from . import messages

_KEY_SIZE = 32


class Switchboard:
    """Takes the calls of workers, who say which one they are; for the driver's one loop.

    ``bell`` becomes readable when somebody has called or :meth:`ring` was called.
    """

    def __init__(self) -> None:
        self.key = secrets.token_bytes(_KEY_SIZE)
        # A name that lies in no folder leaves nothing behind when the driver is killed.
        address = f"\0meshferry-{secrets.token_hex(16)}" if sys.platform == "linux" else None
        self._listener = Listener(address, "AF_UNIX" if address else None, backlog=64, authkey=self.key)
        self.bell, self._rope = Pipe(duplex=False)
        self._lock = threading.Lock()
        self._calls: queue.SimpleQueue[tuple[int, Connection]] = queue.SimpleQueue()
        self._is_open = True
        self._thread = threading.Thread(target=self._take_calls, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        address = self._listener.address
        return address.decode("ascii") if isinstance(address, bytes) else str(address)

    @property
    def family(self) -> str:
        return "AF_PIPE" if sys.platform == "win32" else "AF_UNIX"

    def ring(self) -> None:
        """Wake up whoever waits for the bell; any thread may."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._is_open:
                self._rope.send_bytes(b"!")

    def answer(self) -> list[tuple[int, Connection]]:
        """Stop the bell; return who has called since, by number, and the lines to them."""
        with contextlib.suppress(OSError, EOFError):
            while self.bell.poll():
                self.bell.recv_bytes()
        calls = []
        with contextlib.suppress(queue.Empty):
            while True:
                calls.append(self._calls.get_nowait())
        return calls

    def close(self) -> None:
        with self._lock:
            self._is_open = False
        with contextlib.suppress(OSError, EOFError, AuthenticationError):
            Client(self.address, self.family, self.key).close()  # for the thread to look up
        self._thread.join(5)
        self._listener.close()
        self._rope.close()
        self.bell.close()

    def _take_calls(self) -> None:
        while self._is_open:
            try:
                connection = self._listener.accept()
                number = int(messages.receive(connection)["hello"]) if self._is_open else -1
            except (OSError, EOFError, AuthenticationError, ValueError, KeyError, TypeError):
                continue  # whoever that was, it is none of ours
            if number < 0:
                connection.close()
                continue
            self._calls.put((number, connection))
            self.ring()
