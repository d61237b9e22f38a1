"""Who is next: tables of waiting work in, batches out."""

from __future__ import annotations

import pytest

from container.engine.base import Prepared, Segment
from container.order import Deadline, Fifo, Work
from container.utterance import Piece, Utterance


def work(utterance: Utterance, index: int, due_s: float, tokens: int = 50) -> Work:
    item = Prepared(Segment(f"piece {index}", "anna"), tokens=tokens, cost_s=tokens / 100)
    return Work(utterance, Piece(index, item), due_s)


def linear(items):
    """An engine for which company saves nothing."""
    return sum(item.cost_s for item in items)


def flat(items):
    """An engine for which company is free."""
    return max(item.cost_s for item in items)


def picked(order, waiting, most=8, now_s=100.0, expected_s=flat):
    batch = order.pick(waiting, most, now_s, expected_s)
    return [(one.utterance.arrived_s, one.piece.index) for one in batch]


def test_first_segments_go_before_everything():
    playing, newcomer = Utterance(1.0), Utterance(99.0)
    waiting = [work(playing, 1, due_s=100.5), work(newcomer, 0, due_s=99.0)]
    assert picked(Deadline(5.0, 0.5), waiting, most=1) == [(99.0, 0)]


def test_later_segments_by_when_the_buffer_runs_dry():
    early, late = Utterance(1.0), Utterance(2.0)
    waiting = [work(early, 3, due_s=110.0), work(late, 1, due_s=101.0)]
    assert picked(Deadline(5.0, 0.5), waiting, most=1) == [(2.0, 1)]


def test_newcomers_by_arrival():
    first, second = Utterance(50.0), Utterance(51.0)
    waiting = [work(second, 0, due_s=51.0), work(first, 0, due_s=50.0)]
    assert picked(Deadline(5.0, 0.5), waiting, most=1) == [(50.0, 0)]


def test_a_starving_listener_gets_every_fourth_batch():
    order = Deadline(starvation_s=5.0, first_delay_bound_s=0.5)
    starving = Utterance(1.0)
    served = []
    for number in range(8):
        newcomer = Utterance(90.0 + number)
        waiting = [work(starving, 1, due_s=90.0), work(newcomer, 0, due_s=newcomer.arrived_s)]
        served += picked(order, waiting, most=1)
    assert [at for at, (arrived, _) in enumerate(served) if arrived == 1.0] == [3, 7]


def test_a_listener_with_audio_left_waits_for_newcomers():
    order = Deadline(starvation_s=5.0, first_delay_bound_s=0.5)
    content = Utterance(1.0)
    for number in range(8):
        newcomer = Utterance(90.0 + number)
        waiting = [work(content, 1, due_s=96.0), work(newcomer, 0, due_s=newcomer.arrived_s)]
        assert picked(order, waiting, most=1) == [(newcomer.arrived_s, 0)]


@pytest.mark.parametrize(
    ("expected_s", "tokens", "joins"),
    [(flat, 50, True), (flat, 90, False), (linear, 50, False), (linear, 4, False)],
)
def test_later_segments_join_newcomers_only_when_that_costs_them_nothing(expected_s, tokens, joins):
    newcomer, playing = Utterance(99.0), Utterance(1.0)
    waiting = [work(newcomer, 0, due_s=99.0), work(playing, 1, due_s=101.0, tokens=tokens)]
    batch = picked(Deadline(5.0, 0.5), waiting, expected_s=expected_s)
    assert batch == ([(99.0, 0), (1.0, 1)] if joins else [(99.0, 0)])


def test_a_batch_of_later_segments_is_short_enough_for_a_newcomer_to_wait_for():
    listeners = [Utterance(float(number)) for number in range(8)]
    waiting = [work(listener, 1, due_s=101.0, tokens=20) for listener in listeners]
    assert len(picked(Deadline(5.0, first_delay_bound_s=0.5), waiting, expected_s=linear)) == 2
    assert len(picked(Deadline(5.0, first_delay_bound_s=0.5), waiting, expected_s=flat)) == 8


def test_lengths_in_a_batch_are_similar():
    newcomers = [Utterance(float(number)) for number in range(4)]
    sizes = [20, 90, 30, 45]
    waiting = [work(one, 0, due_s=one.arrived_s, tokens=size) for one, size in zip(newcomers, sizes, strict=True)]
    assert picked(Deadline(5.0, 0.5), waiting) == [(0.0, 0), (2.0, 0)]


def test_pieces_of_one_text_never_overtake_each_other():
    speaker = Utterance(1.0)
    waiting = [
        work(speaker, 1, due_s=101.0, tokens=20),
        work(speaker, 2, due_s=102.0, tokens=90),
        work(speaker, 3, due_s=103.0, tokens=20),
    ]
    assert picked(Deadline(5.0, 5.0), waiting) == [(1.0, 1)]


def test_fifo_finishes_a_request_before_the_next():
    first, second = Utterance(1.0), Utterance(2.0)
    waiting = [work(second, 0, due_s=2.0), work(first, 4, due_s=999.0)]
    assert picked(Fifo(), waiting) == [(1.0, 4)]
