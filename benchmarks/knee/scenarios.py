"""The platforms that a rule is tried on: 29 that are named, some more that came up later, and any number at random."""

import random
from collections.abc import Callable

from benchmarks.knee.platforms import Course, Platform, Scenario, constant, drifting, skewed, two_kinds, uniform


class Slower:
    """Each request that the platform holds beyond `held` takes `slope` more of the time."""

    def __init__(self, held: float, slope: float) -> None:
        self._held, self._slope = held, slope

    def __call__(self, held: int) -> float:
        """Factor of the service time while it holds `held`."""
        return 1.0 + self._slope * max(0.0, held - self._held)


def _ramp(low: float, high: float, since: float, took: float) -> Course:
    return lambda now: low + (high - low) * min(1.0, max(0.0, (now - since) / took))


def thrashing(until: float = 60.0, most: int = 1_000) -> Scenario:
    """Finding T13: 4 workers of 20 ms, slower by 3% for each request beyond 24."""
    platform = Platform(uniform(0.02, 0.2), workers=4, slowdown=Slower(24, 0.03), queue_room=120)
    name = f"thrashes, {most} allowed"
    return Scenario(name, platform, constant(200.0), constant(0.02), until, (until / 4, until), most=most)


def queue(workers: int, service_s: float, sigma: float) -> Scenario:
    """Nothing but workers and a queue without end."""
    until = max(30.0, min(240.0, 12_000 * service_s / workers))
    platform = Platform(skewed(service_s, sigma), workers=workers)
    name = f"{workers} workers of {service_s * 1000:g} ms, sigma {sigma:g}"
    return Scenario(name, platform, constant(workers / service_s), constant(service_s), until, (until / 2, until))


def unlimited(latency_s: float, until: float, most: int = 1_000, wrong: float = 0.0, lost: float = 0.0) -> Scenario:
    """Serves any number at once; some answers are a 500, or never come."""
    platform = Platform(uniform(latency_s, 0.1), wrong=wrong, lost=lost)
    name = f"{latency_s * 1000:g} ms, unlimited, {most} allowed"
    name += f", {wrong:.0%} 500s" if wrong else f", {lost:.0%} lost" if lost else ""
    best = constant(most / latency_s)
    return Scenario(name, platform, best, constant(latency_s), until, (until / 2, until), most=most)


def outage() -> Scenario:
    """Ten seconds of nothing but 503s."""
    platform = Platform(skewed(0.05, 0.5), workers=16, outage=(30.0, 40.0))
    return Scenario("an outage of 10 s, afterwards", platform, constant(320.0), constant(0.05), 70.0, (45.0, 70.0))


def named() -> list[Scenario]:
    """The 29."""
    sixteen = Platform(skewed(0.05, 0.5), workers=16)
    every = [thrashing()]
    for workers, service_s, sigma in (
        (2, 0.005, 1.0), (2, 0.5, 0.5), (4, 0.05, 1.0), (8, 0.02, 0.5), (16, 0.1, 1.0), (32, 0.2, 0.5), (64, 0.05, 1.0),
        (64, 0.5, 1.0),
    ):  # fmt: skip
        every.append(queue(workers, service_s, sigma))
    far = Platform(skewed(0.02, 0.5), workers=8, network_s=constant(0.06))
    every.append(Scenario("8 workers, 60 ms away", far, constant(400.0), constant(0.08), 40.0, (15.0, 40.0)))
    every += [unlimited(0.05, 8.0), unlimited(0.3, 25.0), unlimited(0.05, 20.0, most=64)]
    kinds = two_kinds(constant(0.1), 0.01, 0.4)
    both = Platform(kinds, workers=16)
    every.append(
        Scenario("reads and writes, 16 workers", both, constant(16 / 0.049), constant(0.049), 90.0, (30.0, 90.0))
    )
    both = Platform(kinds)
    every.append(
        Scenario("reads and writes, unlimited", both, constant(1_000 / 0.049), constant(0.049), 12.0, (6.0, 12.0))
    )
    half = Platform(skewed(0.05, 0.5), workers=16, changes=((60.0, 8), (120.0, 16)))
    every.append(Scenario("half of the workers, for a minute", half, _halved, constant(0.05), 180.0, (20.0, 180.0)))
    every.append(
        Scenario("others send half", sixteen, constant(160.0), constant(0.05), 120.0, (30.0, 120.0), others=160.0)
    )
    every.append(
        Scenario("a second one", sixteen, constant(320.0), constant(0.05), 180.0, (100.0, 180.0), twin_from=20.0)
    )
    every.append(
        Scenario("others hold 24", sixteen, constant(160.0), constant(0.05), 120.0, (30.0, 120.0), others_held=24)
    )
    drift = _ramp(0.03, 0.15, 30.0, 600.0)
    farther = Platform(skewed(0.02, 0.5), workers=4, network_s=drift)
    every.append(
        Scenario("ever farther", farther, constant(200.0), lambda now: 0.02 + drift(now), 700.0, (30.0, 700.0))
    )
    slower = _ramp(0.05, 0.2, 30.0, 600.0)
    ever = Platform(drifting(slower, 0.5), workers=16)
    every.append(Scenario("ever slower", ever, lambda now: 16 / slower(now), slower, 700.0, (30.0, 700.0)))
    short = Platform(skewed(0.05, 0.5), workers=8, queue_room=4)
    every.append(Scenario("503s beyond 12", short, constant(160.0), constant(0.05), 90.0, (20.0, 90.0)))
    counted = Platform(uniform(0.1, 0.2), per_second=100)
    every.append(Scenario("100 a second, else 429", counted, constant(100.0), constant(0.1), 90.0, (20.0, 90.0)))
    for service_s, workers in ((0.05, 16), (0.02, 4)):
        stops = Platform(skewed(service_s, 0.5), workers=workers, pause=(20.0, 1.0))
        best = constant(0.95 * workers / service_s)
        name = f"{workers} workers that stop for a second"
        every.append(Scenario(name, stops, best, constant(service_s), 130.0, (20.0, 120.0)))
    one = Platform(skewed(0.2, 0.5), workers=1)
    every.append(Scenario("one worker of 200 ms", one, constant(5.0), constant(0.2), 400.0, (100.0, 400.0)))
    every.append(_paced(sixteen, 20.0, 320.0, 0.05, 90.0, 70.0))
    every.append(_paced(Platform(skewed(0.2, 0.5), workers=3), 12.0, 15.0, 0.2, 120.0, 80.0))
    every.append(outage())
    return every


def _halved(now: float) -> float:
    return 160.0 if 60.0 <= now < 120.0 else 320.0


def _until_a_minute(rate: float) -> Callable[[float], float | None]:
    return lambda now: rate if now < 60.0 else None


def _paced(platform: Platform, rate: float, freed: float, unloaded_s: float, until: float, since: float) -> Scenario:
    name, pace = f"paced at {rate:g}, then free", _until_a_minute(rate)
    return Scenario(
        name, platform, lambda now: pace(now) or freed, constant(unloaded_s), until, (since, until), pace=pace
    )


def more() -> list[Scenario]:
    """What the 29 lack: errors that have nothing to do with how many are in flight, work that changes its kind."""
    sixteen = Platform(skewed(0.05, 0.5), workers=16)
    every = [thrashing(most=64)]
    every += [unlimited(0.05, 10.0, wrong=share) for share in (0.01, 0.03, 0.1, 0.3)]
    every += [unlimited(0.05, 10.0, lost=0.01), unlimited(0.05, 10.0, lost=0.1)]
    for wrong in (0.01, 0.1):
        platform = Platform(skewed(0.05, 0.5), workers=16, wrong=wrong)
        every.append(
            Scenario(f"16 workers, {wrong:.0%} 500s", platform, constant(320.0), constant(0.05), 90.0, (30.0, 90.0))
        )
    platform = Platform(skewed(0.05, 0.5), workers=8, queue_room=4, wrong=0.1)
    every.append(Scenario("503s beyond 12, 10% 500s", platform, constant(160.0), constant(0.05), 90.0, (20.0, 90.0)))
    for period in (3.0, 20.0):
        turns = _turns(period)
        platform = Platform(two_kinds(turns, 0.02, 0.2), workers=16)
        mean_s = _mean_of_kinds(turns)
        every.append(
            Scenario(
                f"reads and writes in turns of {period:g} s", platform, _rate_of(mean_s), mean_s, 180.0, (20.0, 180.0)
            )
        )
    every.append(
        Scenario(
            "a second one, 20 min",
            sixteen,
            constant(320.0),
            constant(0.05),
            1_200.0,
            (1_000.0, 1_200.0),
            twin_from=20.0,
        )
    )
    return every


def _turns(period: float) -> Course:
    return lambda now: 0.9 if int(now / period) % 2 else 0.1


def _mean_of_kinds(rare: Course) -> Course:
    return lambda now: 0.02 + 0.18 * rare(now)


def _rate_of(mean_s: Course) -> Course:
    return lambda now: 16.0 / mean_s(now)


def at_random(seed: int, count: int = 60) -> list[Scenario]:
    """Any workers, times, networks, slowdowns and queues; the same for the same seed."""
    return [_random(random.Random(seed * 1_000 + place), place) for place in range(count)]


def _random(rng: random.Random, place: int) -> Scenario:
    workers = int(2 ** rng.uniform(0, 7))
    service_s = 10 ** rng.uniform(-2.3, -0.3)
    sigma = rng.choice((0.1, 0.3, 0.5, 0.8, 1.0))
    network_s = rng.choice((0.0, 0.0, service_s * rng.uniform(0.2, 4)))
    knee = workers * (1 + network_s / service_s)
    held, slope = rng.uniform(1.5, 8) * knee, rng.choice((0.0, 0.01, 0.05))
    room = rng.choice((None, None, int(knee * rng.uniform(1, 10)) + 1))
    most = rng.choice((64, 200, 1_000))
    best = min(workers / service_s, most / (service_s + network_s))
    until = max(20.0, min(900.0, 12_000 / best))
    platform = Platform(
        skewed(service_s, sigma), workers=workers, network_s=constant(network_s), queue_room=room,
        slowdown=Slower(held, slope) if slope else None,
    )  # fmt: skip
    name = (
        f"{place}: {workers} of {service_s * 1000:.0f} ms, sigma {sigma:g}, {network_s * 1000:.0f} ms away, "
        f"slope {slope:g} from {held:.0f}, room {room}, {most} allowed"
    )
    latency_s = constant(service_s + network_s)
    return Scenario(name, platform, constant(best), latency_s, until, (until / 3, until), most=most)
