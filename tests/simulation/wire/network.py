"""The network of a simulation: connections in memory between the real client and the real server, and what befalls
them.

One `Wire` is one end of a connection; what it writes travels to the other end in order and takes its time. Every
request meets a `Fate`, decided by the schedule when its head is known: it may be cut at any byte, held up, answered
by a proxy in the platform's place, or arrive long after the client gave up. Everything is written down (`Exchange`,
`trace`), so that invariants can be checked and two runs compared.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from bulk.platform.response_heads import AnswerProtocol
from tests.simulation.wire.exchanges import Course, Exchange, content_length, drops, half_of_answer
from tests.simulation.wire.fates import FINE, TRIP_S, Fate
from tests.simulation.wire.memory import Memory

END_S = 1e-4
"""How long after the last bytes the end of a connection is noticed (seconds)."""
GIVEN_UP_S = 12.0
"""How long after it was given up a request may still arrive (seconds): less than the settle time of `schedules`."""
HELD_S = 30.0
"""How long after a request that comes late its connection is closed at the platform: its proxy waits for the answer."""

ALL = 1 << 60
BUDGET_HEADERS = re.compile(rb"(?i)X-RateLimit-[a-z]+: [^\r]*\r\n")


@dataclass(slots=True, eq=False)
class Network:
    """All connections to one server.

    Attributes:
        server: makes the server's side of a connection.
        fate_of: decides what befalls a request, when its head is known.
        connect: called when a connection is made; returns the seconds that it takes, or raises OSError.
        given_up_s: how long after the client gave a request up it may still arrive (seconds).
        watchers: called with each exchange at its first byte. listeners: called with each when it has ended.
        is_forgetful: exchanges and trace are not kept, where hundreds of thousands are sent.
        hides_budgets: the platform shows no X-RateLimit headers.
        memory: of what reads were answered, where some shall be stale.
        exchanges: everything that was sent (`sent` of them). trace: a line for everything that happened.
    """

    server: Callable[[], Any]
    fate_of: Callable[["Exchange"], Fate] = lambda exchange: FINE
    connect: Callable[[], float] = lambda: TRIP_S
    given_up_s: float = GIVEN_UP_S
    watchers: list[Callable[[Exchange], None]] = field(default_factory=list)
    listeners: list[Callable[[Exchange], None]] = field(default_factory=list)
    is_forgetful: bool = False
    hides_budgets: bool = False
    sent: int = 0
    memory: Memory | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    open_wires: dict["Wire", None] = field(default_factory=dict)
    opened: int = 0

    def connector(self) -> aiohttp.BaseConnector:
        """For one transport; it is closed together with that."""
        return MemoryConnector(self)

    def note(self, text: str) -> None:
        """Write a line into the trace."""
        if self.is_forgetful:
            return
        self.trace.append(f"{asyncio.get_running_loop().time():.6f} {text}")

    @property
    def client_wires(self) -> list["Wire"]:
        """Connections that the client holds open."""
        return [wire for wire in self.open_wires if wire.is_client]

    async def open(self, client: ResponseHandler) -> None:
        """Connect `client` with a new server side.

        Raises:
            OSError: what `connect` says.
        """
        await asyncio.sleep(self.connect())
        self.opened += 1
        server = self.server()
        near, far = Wire(self, client, self.opened, is_client=True), Wire(self, server, self.opened, is_client=False)
        near.peer, far.peer = far, near
        self.note(f"c{self.opened} opened")
        server.connection_made(far)
        client.connection_made(near)

    def begin(self, head: bytes, total: int) -> Course:
        """A request's head is known."""
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        exchange = Exchange(
            number=self.sent + 1,
            method=method,
            path=target,
            token=fields.get("authorization", "").rpartition(" ")[2],
            is_conditional="if-none-match" in fields or "if-modified-since" in fields,
            at=asyncio.get_running_loop().time(),
        )
        exchange.fate = self.fate_of(exchange)
        if exchange.fate.stale_s:
            said = self.memory.recall(exchange, exchange.fate.stale_s) if self.memory else None
            exchange.fate = FINE if said is None else replace(exchange.fate, instead=said)
        self.sent += 1
        if not self.is_forgetful:
            self.exchanges.append(exchange)
        self.note(f"#{exchange.number} {method} {target} {exchange.fate.kind}")
        for watch in self.watchers:
            watch(exchange)
        return Course(exchange, total)


class MemoryConnector(aiohttp.BaseConnector):
    """Where aiohttp gets its connections from."""

    def __init__(self, network: Network) -> None:
        super().__init__(limit=0, keepalive_timeout=4.0)
        self._network = network

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        client = AnswerProtocol(asyncio.get_running_loop())
        try:
            await self._network.open(client)
        except OSError as error:
            self._network.note(f"not connected: {error}")
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        return client


class Wire(asyncio.Transport):
    """One end of a connection in memory."""

    peer: "Wire"

    def __init__(self, network: Network, protocol: Any, number: int, *, is_client: bool) -> None:
        super().__init__({"peername": ("198.51.100.7", 40_000 + number), "sockname": ("198.51.100.1", 80)})
        self.network, self.number, self.is_client = network, number, is_client
        self._loop, self._protocol = asyncio.get_running_loop(), protocol
        self._on_way: deque[tuple[float, bytes | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._held: deque[bytes] = deque()
        self._is_paused = self._is_closing = self._is_over = False
        self._head = b""
        self._course: Course | None = None
        network.open_wires[self] = None

    # -- what aiohttp calls

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Bytes from this side's protocol."""
        if self._is_closing or not data:
            return
        if self.is_client:
            self._ask(bytes(data))
        else:
            self.peer._answer(bytes(data))

    def writelines(self, parts: Any) -> None:
        """The same, of several parts."""
        self.write(b"".join(parts))

    def close(self) -> None:
        """End it politely: what was written arrives first."""
        if self._is_closing:
            return
        self._is_closing = True
        held_s = TRIP_S
        if self.is_client and self._course is not None and self._course.exchange.ended_at is None:
            self._end_exchange(f"#{self._course.exchange.number} given up")
            if self._on_way:
                latest = self._loop.time() + self.network.given_up_s
                self._on_way = deque((min(due, latest), data) for due, data in self._on_way)
                self._loop.call_at(latest, self._arrive)
                held_s = self.network.given_up_s + HELD_S
        self._send(None, held_s)
        self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        """End it at once."""
        self._is_closing = True
        self._reset("aborted")

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Hold back what arrives."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Give what was held back."""
        self._is_paused = False
        self._loop.call_soon(self._give)

    def is_reading(self) -> bool:
        """Whether what arrives is given at once."""
        return not self._is_paused and not self._is_closing

    def can_write_eof(self) -> bool:
        """Half-closed connections are not played."""
        return False

    def get_write_buffer_size(self) -> int:
        """Nothing waits on this side."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Has no effect."""

    def get_protocol(self) -> asyncio.BaseProtocol:
        """This side's protocol."""
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Another protocol from now on."""
        self._protocol = protocol

    # -- the request's way

    def _ask(self, data: bytes) -> None:
        """The client writes: a new exchange begins where the one before was written out."""
        course = self._course
        if course is None or course.sent >= course.request_bytes:
            self._head += data
            head, mark, _ = self._head.partition(b"\r\n\r\n")
            if not mark:
                return
            data, self._head = self._head, b""
            course = self._course = self.network.begin(head, len(head) + len(mark) + content_length(head))
        fate = course.exchange.fate
        before, course.sent = course.sent, course.sent + len(data)
        is_whole = course.sent >= course.request_bytes
        if fate.instead is not None and not fate.is_passed_on:
            if is_whole:
                self._answer_by_proxy(course, 2 * fate.request_s)
            return
        cut = ALL if fate.request_cut is None else fate.request_cut
        self._send(data[: max(0, cut - before)], fate.request_s)
        if course.sent > cut >= before:
            self._loop.call_later(
                fate.request_s + END_S, self._reset, f"request of #{course.exchange.number} cut at {cut}"
            )

    def _answer_by_proxy(self, course: Course, seconds: float) -> None:
        course.is_answered_by_proxy = True
        assert course.exchange.fate.instead is not None, "asked for where it is there"
        self.peer._send(course.exchange.fate.instead, seconds)
        self.peer._send(None, seconds)

    # -- the answer's way

    def _answer(self, data: bytes) -> None:
        """The server writes; this is the client's side, which knows the exchange."""
        course = self._course
        if course is None:
            return
        fate = course.exchange.fate
        if course.is_answered_by_proxy or fate.is_mute:
            return
        if self.network.memory is not None:
            self.network.memory.hear(course.exchange, data)
        if self.network.hides_budgets and course.answered == 0:
            data = BUDGET_HEADERS.sub(b"", data)
        if fate.instead is not None:
            self._answer_by_proxy(course, fate.answer_s)
            return
        if course.answer_cut is None:
            course.answer_cut = half_of_answer(data) if fate.is_halved else fate.answer_cut
        before, course.answered = course.answered, course.answered + len(data)
        cut = ALL if course.answer_cut is None else course.answer_cut
        data = data[: max(0, cut - before)]
        if fate.drip_s:
            for start, end in drops(len(data)):
                self.peer._send(data[start:end], fate.answer_s + (before + start) * fate.drip_s)
        else:
            self.peer._send(data, fate.answer_s)
        if course.answered > cut >= before:
            what = f"answer of #{course.exchange.number} cut at {cut}"
            if fate.is_reset:
                self._loop.call_later(fate.answer_s + END_S, self._reset, what)
            else:
                self.network.note(what)
                self.peer._send(None, fate.answer_s)

    # -- between the two ends

    def _send(self, data: bytes | None, seconds: float) -> None:
        """Put bytes, or the end (None), on their way to the other side, behind what is on it."""
        if data == b"":
            return
        due = max(self._loop.time() + seconds, self._on_way[-1][0] if self._on_way else 0.0)
        if data is None:
            due += END_S
        self._on_way.append((due, data))
        if self._timer is None:
            self._timer = self._loop.call_at(self._on_way[0][0], self._arrive)

    def _arrive(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        while self._on_way and self._on_way[0][0] <= self._loop.time():
            data = self._on_way.popleft()[1]
            if data is None:
                self.peer._lose(None)
            else:
                self.peer._take(data)
        if self._on_way:
            self._timer = self._loop.call_at(self._on_way[0][0], self._arrive)

    def _take(self, data: bytes) -> None:
        if self._is_over:
            return
        self._held.append(data)
        self._give()

    def _give(self) -> None:
        while self._held and not self._is_paused and not self._is_over:
            data = self._held.popleft()
            self._mark(data)
            self._protocol.data_received(data)

    def _mark(self, data: bytes) -> None:
        """Write down what arrived."""
        if self.is_client:
            course = self._course
            if course is None or course.exchange.ended_at is not None:
                return
            exchange = course.exchange
            if exchange.answered_at is None:
                exchange.answered_at = self._loop.time()
            course.answer_head += data[: 12 - len(course.answer_head)]
            if len(course.answer_head) == 12:
                exchange.status = int(course.answer_head[9:])
                self._end_exchange(f"{exchange.status} for #{exchange.number}")
        else:
            course = self.peer._course
            if course is not None:
                course.passed += len(data)
                if course.passed >= course.request_bytes and course.exchange.arrived_at is None:
                    course.exchange.arrived_at = self._loop.time()

    def _end_exchange(self, what: str) -> None:
        assert self._course is not None, "an exchange is under way"
        self._course.exchange.ended_at = self._loop.time()
        self.network.note(what)
        for listen in self.network.listeners:
            listen(self._course.exchange)

    def _reset(self, why: str) -> None:
        """Both sides lose the connection, with what is on its way."""
        self.network.note(f"c{self.number} {why}")
        for wire in (self, self.peer):
            wire._on_way.clear()
            wire._lose(ConnectionResetError(104, "Connection reset by peer"))

    def _lose(self, error: BaseException | None) -> None:
        if self._is_over:
            return
        was_closing, self._is_closing, self._is_over = self._is_closing, True, True
        del self.network.open_wires[self]
        course = self._course
        if course is not None and course.exchange.ended_at is None:
            self._end_exchange(f"#{course.exchange.number} lost")
        if not was_closing and error is None:
            self._protocol.eof_received()
            self._send(None, TRIP_S)
        self._protocol.connection_lost(error)
