"""Breaks each module of the pure core in every small way, and counts how much of that its own tests notice.

    python -m tests.mutation [--jobs N] [MODULE…]

The tests are collected and run once; every mutant then lives in a fork of that process and runs them again, up to the
first that fails, properties last. A function that is broken gets its new code there; where something outside of
functions is, everything is imported anew. What hangs counts as noticed. Ends with 1 where less than 90% of all was
noticed. Survivors are listed; docs/testing.md says why the known ones change nothing.
"""

import argparse
import contextlib
import functools
import gc
import importlib
import importlib.abc
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Final, NoReturn

import hypothesis
import pytest

from tests.mutation.core import CORE
from tests.mutation.mutants import Mutant, broken, mutants

ROOT: Final = Path(__file__).parents[2]
WANTED: Final = 0.9
SURVIVED, NOTICED = 0, 1
PATIENCE, LEAST_S = 8.0, 30.0
"""A mutant may take the former times what the tests take without it, and at least the latter (seconds)."""
OPTIONS: Final = [
    "-x", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--no-summary", "--assert=plain",
]  # fmt: skip


@dataclass(slots=True)
class Score:
    """What became of the mutants of one module (counts)."""

    module: str
    mutants: int = 0
    noticed: int = 0
    survivors: list[Mutant] = field(default_factory=list)


def main() -> int:
    """Judge the modules that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="path of a module of the core")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    chosen = given.modules or list(CORE)
    unknown = [name for name in chosen if name not in CORE]
    if unknown:
        parser.error(f"not of the core: {', '.join(unknown)}")
    os.nice(10)
    os.chdir(ROOT)
    hypothesis.settings.register_profile(
        "mutation",
        max_examples=50,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("mutation")
    whole = noticed = 0
    for name in chosen:
        mutants_of, noticed_of = hunted(name, given.jobs)
        whole, noticed = whole + mutants_of, noticed + noticed_of
    share = noticed / whole if whole else 1.0
    say(f"{noticed} of {whole} mutants noticed: {share:.1%}; wanted {WANTED:.0%}")
    return 0 if share >= WANTED else 1


def hunted(name: str, jobs: int) -> tuple[int, int]:
    """Mutants of one module, and how many were noticed; in a process of its own, so that nothing of it stays."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        hunt = Hunt(name, jobs)
        try:
            pytest.main([*OPTIONS, *CORE[name]], plugins=[hunt])
        finally:
            os.write(writing, f"{hunt.score.mutants} {hunt.score.noticed}".encode())
            os._exit(0)
    os.close(writing)
    with open(reading) as told:
        mutants_of, noticed_of = map(int, told.read().split())
    os.waitpid(child, 0)
    return mutants_of, noticed_of


class Hunt:
    """All mutants of one module: a plugin, which takes the place of the loop that runs the tests."""

    def __init__(self, name: str, jobs: int) -> None:
        self._name, self._jobs = name, jobs
        self._source = (ROOT / name).read_text()
        self._functions: dict[str, list[FunctionType]] = {}
        self._caches: list[functools._lru_cache_wrapper[object]] = []
        self.score = Score(name)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Properties take most of the time and seldom see what no example sees."""
        items.sort(key=lambda item: hypothesis.is_hypothesis_test(getattr(item, "function", None)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run them once as they are, and once for each mutant."""
        began = time.monotonic()
        with silence():
            run(session)
        if session.testsfailed or not session.items:
            say(f"{self._name}: its tests fail as it is: {' '.join(CORE[self._name])}")
            self.score.mutants = 1
            return True
        took_s = time.monotonic() - began
        self._functions = living(ROOT / self._name)
        self._caches = [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
        gc.collect()
        gc.freeze()
        self._judge(session, max(LEAST_S, PATIENCE * took_s))
        gc.unfreeze()
        score = self.score
        say(f"{self._name}: {score.noticed} of {score.mutants} ({time.monotonic() - began:.0f} s)")
        lines = self._source.splitlines()
        for mutant in sorted(score.survivors, key=lambda each: each.number):
            say(f"  {self._name}:{mutant.line}: {mutant.what}: {lines[mutant.line - 1].strip()}")
        return True

    def _judge(self, session: pytest.Session, most_s: float) -> None:
        waiting, running = mutants(self._source)[::-1], dict[int, tuple[Mutant, float]]()
        score = self.score
        score.mutants = len(waiting)
        while waiting or running:
            while waiting and len(running) < self._jobs:
                mutant = waiting.pop()
                running[self._fork(session, mutant)] = (mutant, time.monotonic() + most_s)
            for child, (mutant, until) in list(running.items()):
                ended = look(child, until)
                if ended is not None:
                    del running[child]
                    score.noticed += ended == NOTICED
                    if ended == SURVIVED:
                        score.survivors.append(mutant)
            if len(running) == self._jobs or not waiting:
                signal.sigtimedwait([signal.SIGCHLD], 0.05)

    def _fork(self, session: pytest.Session, mutant: Mutant) -> int:
        """Start a child that runs the tests on the mutant; returns its process id."""
        child = os.fork()
        if not child:
            self._live(session, mutant)
        return child

    def _live(self, session: pytest.Session, mutant: Mutant) -> NoReturn:
        code = NOTICED
        try:
            os.setpgid(0, 0)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            with silence():
                broken_code = compile(broken(self._source, mutant.number), str(ROOT / self._name), "exec")
                if mutant.function is not None and self._replace(mutant.function, broken_code):
                    for cache in self._caches:  # what it said before it was broken must not hide what it says now
                        cache.cache_clear()
                    run(session)
                    code = NOTICED if session.testsfailed else SURVIVED
                else:
                    import_anew(self._name, broken_code)
                    code = int(pytest.main([*OPTIONS, *CORE[self._name]]))
        finally:
            os._exit(code)

    def _replace(self, function: str, code: CodeType) -> bool:
        """Give the living function its new code; whether that could be done."""
        new = next((each for each in codes(code) if each.co_qualname == function), None)
        known = self._functions.get(function, [])
        if new is None or not known or any(each.__code__.co_freevars != new.co_freevars for each in known):
            return False
        for each in known:
            each.__code__ = new
        return True


def run(session: pytest.Session) -> None:
    """Run the tests that were collected, up to the first that fails."""
    items = session.items
    for place, item in enumerate(items):
        if isinstance(item, pytest.Function):
            item._initrequest()
        following = items[place + 1] if place + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """What tests print is nobody's concern here."""
    kept, sink = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_WRONLY)
    try:
        sys.stdout.flush()
        for number in (1, 2):
            os.dup2(sink, number)
        yield
    finally:
        sys.stdout.flush()
        for number, before in enumerate(kept, 1):
            os.dup2(before, number)
            os.close(before)
        os.close(sink)


def say(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def look(child: int, until: float) -> int | None:
    """How it ended; None: it still runs, and may. One that runs beyond `until` (monotonic) is killed: noticed."""
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid:
        return SURVIVED if status == 0 else NOTICED
    if time.monotonic() > until:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return NOTICED
    return None


def living(path: Path) -> dict[str, list[FunctionType]]:
    """The functions of a module as they are in memory, by qualified name."""
    found: dict[str, list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == str(path):
            found.setdefault(each.__code__.co_qualname, []).append(each)
    return found


def codes(code: CodeType) -> Iterator[CodeType]:
    """It and all that it holds."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, and gives it other code."""

    def __init__(self, module: str, path: Path, code: CodeType) -> None:
        self._module, self._path, self._code = module, path, code

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, vars(module))


def import_anew(name: str, code: CodeType) -> None:
    """Forget everything of ours, so that the tests import the mutant."""
    for known in list(sys.modules):
        if known.partition(".")[0] in ("bulk", "jobs") or (known.startswith("tests") and "mutation" not in known):
            del sys.modules[known]
    module = name.removesuffix(".py").replace("/", ".")
    sys.meta_path.insert(0, _Finder(module, ROOT / name, code))


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    raise SystemExit(main())
