"""A resume begins where the run had stopped, however much is done: nothing that is done is read or asked again."""

from pathlib import Path

import pytest

from benchmarks.resume import MOST_S, first_request, make_run
from tests.e2e.support.programs import canned

FEW, MANY = 20_000, 10_000_000


def resumed(tmp_path: Path, items: int, figure) -> dict[str, float]:
    """Go on with a run of which the first nine tenths are done; only items of the last tenth are asked for."""
    log = tmp_path / "requests.log"
    with canned("--log", str(log)) as base_url:
        make_run(tmp_path, base_url, "first", items)
        found = first_request(tmp_path, log)
    asked = [
        line.rpartition("/repo-")[2].partition("/")[0] for line in log.read_text().splitlines() if "/repo-" in line
    ]
    assert min(map(int, asked)) == items // 10 * 9
    assert len(set(asked)) == len(asked)
    figure(
        f"{items // 10 * 9:,} of {items:,} items done: first request {found['first_s']:.2f} s after the resume "
        f"({found['cpu_s']:.2f} s of CPU); stopped, with its report, after {found['stopped_s']:.2f} s"
    )
    return found


def test_a_resume_begins_with_the_first_item_left(tmp_path: Path, figure) -> None:
    """The first request after a resume is for the first item that is not done, and none for one that is."""
    resumed(tmp_path, FEW, figure)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_a_resume_of_ten_million(tmp_path: Path, figure) -> None:
    """With 9,000,000 items done, the first request leaves within 5 s of processor time."""
    assert resumed(tmp_path, MANY, figure)["cpu_s"] < MOST_S
