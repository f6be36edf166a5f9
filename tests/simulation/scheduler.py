"""Seeded scheduler: every process of a history as greenlets of one thread, with a clock of its own.

An actor runs until it comes to a step, a sleep or a wait; then the scheduler decides who goes on. At a step of a
process that may fail, the process may crash (it is never resumed) or be paused for long, so that it wakes up as a
zombie. Everything follows from the seed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]  # it comes without types


class Killed(BaseException):
    """Raised in what is left of a history when it is over."""


class HistoryStuckError(Exception):
    """Nobody can go on, or a limit is exceeded."""


@dataclass(frozen=True)
class Rates:
    """Probabilities of faults, each per step or request of a process that may fail."""

    crash: float = 0.0
    pause: float = 0.0
    lost: float = 0.0
    """A request times out; it may still arrive later."""
    unanswered: float = 0.0
    """A request has its effect, and the answer never comes."""
    delayed: float = 0.0
    stay: float = 0.5
    """That the same actor goes on although others could."""
    longest_pause_s: float = 30.0


class Process:
    """A process: its actors live and die together."""

    def __init__(self, scheduler: Scheduler, name: str, *, may_fail: bool = True) -> None:
        self.scheduler = scheduler
        self.name = name
        self.may_fail = may_fail
        self.is_dead = False
        self.paused_until = 0.0
        self.on_death: list[Callable[[], None]] = []

    @property
    def is_paused(self) -> bool:
        return self.paused_until > self.scheduler.now

    def spawn(self, work: Callable[[], object], name: str) -> Actor:
        return self.scheduler.spawn(self, work, name)

    def kill(self) -> None:
        """Ends it at once, wherever it is; nothing of it is cleaned up."""
        if not self.is_dead:
            self.is_dead = True
            self.scheduler.note(self, "dies")
            for tell in self.on_death:
                tell()


@dataclass(eq=False)
class Actor:
    """A thread of a process."""

    process: Process
    name: str
    thread: Any = None
    ticket: int = 0
    """Number of its last wait: who wakes it names it."""
    is_over: bool = False
    failure: BaseException | None = None


class Scheduler:
    """Runs actors, one at a time, and moves the clock."""

    def __init__(self, seed: int, rates: Rates, *, trace: Callable[[str], None] | None = None) -> None:
        self.rng = random.Random(seed)
        self.rates = rates
        self.now = 1_000.0
        self.steps = 0
        self.max_steps = 1 << 60
        self.faulty = False
        self.over = False
        self.current: Actor | None = None
        self._trace = trace
        self.is_traced = trace is not None
        """Whether anybody reads what steps are called."""
        self._hub = getcurrent()
        self._ready: list[Actor] = []
        self._timers: list[tuple[float, int, Actor | Callable[[], None], int]] = []
        self._sequence = 0
        self._actors: list[Actor] = []
        self._failure: BaseException | None = None

    # What actors call.

    def step(self, what: str, late: Callable[[], object] | None = None) -> None:
        """A point where others may go on, or the process may end; then ``late`` may still happen."""
        actor = self.current
        if actor is None:
            return
        if self.over:
            raise Killed
        self.steps += 1
        if self.steps > self.max_steps:
            self._give_up(f"more than {self.max_steps} steps")
        rng = self.rng
        chance = rng.random()
        self.now += chance * 0.002
        if self._trace is not None:
            self.note(actor.process, f"{actor.name}: {what}")
        if self.faulty and actor.process.may_fail:
            self._perhaps_fail(actor, late)
        timers = self._timers
        if chance > self.rates.stay or (timers and timers[0][0] <= self.now) or actor.process.is_dead:
            self._ready.append(actor)
            self._go_on(actor)
        elif actor.process.paused_until > self.now:
            self.sleep(0.0)

    def sleep(self, seconds: float) -> None:
        """Lets at least so much time pass."""
        actor = self.current
        if actor is None:
            return
        if self.over:
            raise Killed
        actor.ticket += 1
        self._at(self.now + max(seconds, 1e-6), actor, actor.ticket)
        self._go_on(actor)

    def wait(self, seconds: float | None) -> None:
        """Waits to be woken by who has its ticket, or for the time to pass."""
        actor = self.current
        assert actor is not None, "only actors wait"
        if self.over:
            raise Killed
        if seconds is not None:
            self._at(self.now + max(seconds, 1e-6), actor, actor.ticket)
        self._go_on(actor)

    def new_ticket(self) -> tuple[Actor, int]:
        """Announces a wait; returns what wakes it."""
        actor = self.current
        assert actor is not None, "only actors wait"
        actor.ticket += 1
        return actor, actor.ticket

    def wake(self, actor: Actor, ticket: int) -> None:
        """Wakes an actor from the wait of that number."""
        if actor.ticket == ticket and not actor.is_over:
            actor.ticket += 1
            self._ready.append(actor)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Calls something after a time; it takes no steps."""
        self._at(self.now + seconds, action, 0)

    def chance(self, probability: float) -> bool:
        """Decides by the seed; nothing goes wrong in calm times."""
        return self.faulty and self.rng.random() < probability

    def token(self) -> str:
        return f"{self.rng.getrandbits(40):010x}"

    def note(self, process: Process | None, text: str) -> None:
        if self._trace is not None:
            self._trace(f"{self.now:10.3f} {process.name if process else '-':>14} {text}")

    # What the history calls.

    def spawn(self, process: Process, work: Callable[[], object], name: str) -> Actor:
        actor = Actor(process, name)

        def run() -> None:
            try:
                work()
            except Killed:
                pass
            except BaseException as error:
                # Threads of the engine deal with what goes wrong; nobody would hear of it.
                actor.failure = error
                if not self.over:
                    self._failure = error
            actor.is_over = True

        actor.thread = greenlet(run, parent=self._hub)
        self._actors.append(actor)
        self._ready.append(actor)
        return actor

    def run(self, actor: Actor) -> None:
        """Runs everybody until an actor is over."""
        while not actor.is_over:
            following = self._next()
            self.current = following
            following.thread.switch()
            self.current = None
            if self._failure is not None:
                raise self._failure
        if actor.failure is not None:
            raise actor.failure

    def fail(self, error: BaseException) -> None:
        """Ends the history with an error."""
        self._failure = error
        self._hub.switch()

    def close(self) -> None:
        """Unwinds all that is left."""
        self.over = True
        for actor in self._actors:
            if not actor.is_over and actor.thread:
                # Steps of what is unwound must raise, too.
                self.current = actor
                actor.thread.throw(Killed)
        self.current = None
        self._actors.clear()
        self._ready.clear()
        self._timers.clear()

    def resume_all(self) -> None:
        """Ends all pauses."""
        for actor in self._actors:
            actor.process.paused_until = min(actor.process.paused_until, self.now)
        self._timers = [
            (min(at, self.now + 1.0) if isinstance(who, Actor) and at > self.now + 60 else at, number, who, ticket)
            for at, number, who, ticket in self._timers
        ]
        heapq.heapify(self._timers)

    # Inside.

    def _perhaps_fail(self, actor: Actor, late: Callable[[], object] | None) -> None:
        rates, chance = self.rates, self.rng.random()
        if chance < rates.crash:
            if late is not None and self.rng.random() < 0.5:
                self.later(self.rng.expovariate(2.0), late)  # type: ignore[arg-type]
            actor.process.kill()
        elif chance < rates.crash + rates.pause:
            self.pause(actor.process)

    def pause(self, process: Process) -> None:
        seconds = self.rng.random() ** 3 * self.rates.longest_pause_s
        process.paused_until = self.now + seconds
        self.note(process, f"is paused for {seconds:.1f} s")

    def _at(self, when: float, who: Actor | Callable[[], None], ticket: int) -> None:
        self._sequence += 1
        heapq.heappush(self._timers, (when, self._sequence, who, ticket))

    def _go_on(self, actor: Actor) -> None:
        following = self._next()
        if following is actor:
            return
        self.current = following
        following.thread.switch()
        # Back again; whoever has switched here has set ``current``.
        if self.over:
            raise Killed

    def _next(self) -> Actor:
        timers, ready, rng = self._timers, self._ready, self.rng
        while True:
            while timers and timers[0][0] <= self.now:
                _, _, who, ticket = heapq.heappop(timers)
                if not isinstance(who, Actor):
                    before, self.current = self.current, None
                    who()
                    self.current = before
                elif who.ticket == ticket and not who.is_over:
                    who.ticket += 1
                    ready.append(who)
            if not ready:
                if not timers:
                    self._give_up("nobody can go on")
                self.now = timers[0][0]
                continue
            place = int(rng.random() * len(ready))
            actor, ready[place] = ready[place], ready[-1]
            ready.pop()
            process = actor.process
            if actor.is_over or process.is_dead:
                continue
            if process.paused_until > self.now:
                actor.ticket += 1
                self._at(process.paused_until, actor, actor.ticket)
                continue
            return actor

    def _give_up(self, why: str) -> None:
        self._failure = HistoryStuckError(why)
        self.max_steps = 1 << 60
        if getcurrent() is self._hub:
            raise self._failure
        self._hub.switch()
