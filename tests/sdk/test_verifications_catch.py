"""The ten verifications themselves: each is caught at work by a runner that is broken in that one way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sdk import broken_runners
from tests.sdk.conforming import CHECKS, bench, failing, look_at
from tests.sdk.small_shop import Small, write_fixtures

Patch = pytest.MonkeyPatch


BROKEN: list[tuple[Callable[[Patch], None], str]] = [
    (broken_runners.takes_every_page_for_new, "verification_1"),
    (broken_runners.keeps_what_it_cannot_keep, "verification_2"),
    (broken_runners.hides_that_a_checkpoint_was_refused, "verification_3"),
    (broken_runners.takes_no_turns, "verification_4"),
    (broken_runners.takes_every_page_for_new, "verification_5"),
    (broken_runners.settles_whatever_was_settled_meanwhile, "verification_6"),
    (broken_runners.forgets_what_was_put_off, "verification_7"),
    (broken_runners.never_gives_up, "verification_8"),
    (broken_runners.is_rude, "verification_9"),
]


@pytest.mark.parametrize(("break_it", "caught"), BROKEN, ids=[name for _, name in BROKEN])
def test_a_broken_runner_is_caught_by_the_verification_of_that(
    tmp_path: Path, monkeypatch: Patch, break_it: Callable[[Patch], None], caught: str
) -> None:
    """The real runner with one rule taken out."""
    write_fixtures(tmp_path / "fixtures")
    look_at(Small, tmp_path / "fixtures")
    (name,) = (one for one in CHECKS if one.startswith(f"{caught}_"))
    assert failing(bench(Small, tmp_path / "fixtures"), frozenset({name}), tmp_path / "sound") == {}
    with monkeypatch.context() as patch:
        break_it(patch)
        found = failing(bench(Small, tmp_path / "fixtures"), frozenset({name}), tmp_path / "broken")
    assert found.keys() == {name}
