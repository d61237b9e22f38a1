"""In-flight counts over windows."""

from __future__ import annotations

import pytest

from rehearsal.fleet.load import Load


def test_windows_follow_each_other_without_gaps() -> None:
    now = [0.0]
    load = Load(lambda: now[0])
    load.enter()
    now[0] = 4.0
    load.enter()
    now[0] = 10.0
    first = load.take_window()
    assert (first.low, first.high, first.seconds) == (0, 2, 10)
    assert first.mean == pytest.approx(1.6)
    now[0] = 15.0
    load.leave()
    load.leave()
    now[0] = 20.0
    second = load.take_window()
    assert (second.low, second.high, second.mean) == (0, 2, 1.0)
    now[0] = 30.0
    third = load.take_window()
    assert (third.low, third.high, third.mean) == (0, 0, 0)


def test_a_window_of_no_time() -> None:
    load = Load(lambda: 1.0)
    load.enter()
    assert load.take_window().mean == 1.0
