"""Freeze and thaw against a fake account."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from planner.errors import AwsError, Interrupted, UsageError
from scripts.aws import journal as journals
from scripts.aws.endpoint import describe
from scripts.aws.freeze import frozen, thaw
from scripts.aws.scaling import Suspended, read_target

THROTTLED = ["ThrottlingException", "Rate exceeded", 400]


def freeze(clock, **changes):
    settings = {"run_id": "r1", "ttl_s": 600.0, "clock": clock, "force": True} | changes
    return frozen(describe("e", "v"), **settings)


def endpoint(count: int, **changes):
    return {
        "endpoint": {
            "status": "InService",
            "desired": count,
            "current": count,
            "config": "c",
            "reason": None,
            "polls": 0,
        }
        | changes
    }


def test_inside_scaling_is_suspended_and_the_fleet_pinned(account, clock):
    fake = account(**endpoint(3))
    with freeze(clock) as held:
        assert fake.state["target"]["suspended"] == [True, True, True]
        assert fake.state["endpoint"]["current"] == 1
        assert held.live.current_instances == 1
        assert "headroom:freeze" in fake.state["tags"]
    assert fake.state["endpoint"]["current"] == 3
    assert fake.state["tags"] == {}


@pytest.mark.parametrize("suspended", [[False, False, False], [True, True, True], [False, True, False]])
def test_the_suspended_state_comes_back_as_it_was(account, clock, suspended):
    fake = account(target={"min": 2, "max": 9, "suspended": suspended})
    before = fake.durable()
    with freeze(clock):
        pass
    assert fake.durable() == before


def test_an_endpoint_that_was_deleted_meanwhile_leaves_nothing_frozen(account, clock):
    fake = account()
    with pytest.raises(AwsError, match="was deleted while it was frozen"), freeze(clock), fake.edit() as state:
        state["endpoint"] = None
    assert not list(journals.state_dir().glob("*.json"))


def test_a_damaged_journal_says_what_to_do(account, clock):
    account()
    journals.write_file(journals.new_journal(describe("e", "v"), None, "r1", clock.now(), clock.now()))
    journals.file_path("e", "v").write_text("garbage")
    with pytest.raises(UsageError, match="not a freeze journal") as raised:
        thaw("e", "v", clock=clock)
    assert "then remove" in raised.value.hint


def test_a_damaged_mark_of_our_own_traffic_is_no_mark(account, clock):
    account()
    live = describe("e", "v")
    journals.mark_traffic_end(live, clock.now())
    assert journals.traffic_end(live) == clock.now()
    journals.file_path("e", "v", "last").write_text("garbage")
    assert journals.traffic_end(live) is None


def test_without_a_state_directory_nothing_is_frozen(account, clock, monkeypatch, tmp_path):
    fake = account()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADROOM_STATE_DIR", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="cannot be written"), freeze(clock):
        pass
    assert fake.state["tags"] == {}


def test_without_a_target_nothing_is_registered(account, clock):
    fake = account(target=None)
    with freeze(clock):
        pass
    assert "register_scalable_target" not in [call[0] for call in fake.state["calls"]]
    assert fake.state["target"] is None


def test_an_error_in_the_block_passes_through_after_restoring(account, clock):
    fake = account(**endpoint(2))
    before = fake.durable()
    with pytest.raises(ZeroDivisionError), freeze(clock):
        raise ZeroDivisionError
    assert fake.durable() == before


@pytest.mark.parametrize(
    "operation",
    [
        "add_tags",
        "register_scalable_target",
        "update_endpoint_weights_and_capacities",
        "list_tags",
        "describe_endpoint",
    ],
)
def test_a_failure_while_freezing_restores(account, clock, operation):
    fake = account(**endpoint(2))
    before = fake.durable()
    live = describe("e", "v")
    with fake.edit() as state:
        state["failures"][operation] = [["AccessDeniedException", "no", 403]]
    with pytest.raises(AwsError, match="not allowed"), frozen(live, run_id="r", ttl_s=1, clock=clock, force=True):
        pass
    assert fake.durable() == before


@pytest.mark.parametrize(
    "operation",
    [
        "add_tags",
        "register_scalable_target",
        "update_endpoint_weights_and_capacities",
        "describe_endpoint",
        "delete_tags",
    ],
)
def test_throttling_is_waited_out(account, clock, operation):
    fake = account(**endpoint(2))
    before = fake.durable()
    live = describe("e", "v")
    with fake.edit() as state:
        state["failures"][operation] = [THROTTLED] * 3
    with frozen(live, run_id="r", ttl_s=1, clock=clock, force=True):
        pass
    assert fake.durable() == before
    assert fake.state["failures"][operation] == []


def test_restore_waits_for_an_update_in_progress(account, clock):
    fake = account(**endpoint(2))
    before = fake.durable()
    with freeze(clock), fake.edit() as state:
        state["endpoint"].update(status="Updating", desired=5, polls=0)
        state["busy"] = 2
    assert fake.durable() == before


def test_a_restore_that_fails_says_what_to_do_and_keeps_the_journal(account, clock):
    fake = account(**endpoint(2))
    with pytest.raises(AwsError, match="could not be restored") as failure, freeze(clock), fake.edit() as state:
        state["failures"]["register_scalable_target"] = [["AccessDeniedException", "no", 403]]
    assert "make thaw" in failure.value.hint
    assert "headroom:freeze" in fake.state["tags"]
    thaw("e", "v", clock=clock)
    assert fake.state["target"]["suspended"] == [False, False, False]
    assert fake.state["endpoint"]["current"] == 2


def test_a_target_deregistered_meanwhile_is_not_created_again(account, clock):
    fake = account()
    with freeze(clock), fake.edit() as state:
        state["target"] = None
    assert fake.state["target"] is None
    assert fake.state["tags"] == {}


def test_an_interrupt_in_the_block_becomes_interrupted(account, clock):
    fake = account(**endpoint(2))
    before = fake.durable()
    with pytest.raises(Interrupted), freeze(clock):
        raise KeyboardInterrupt
    assert fake.durable() == before


def test_two_runs_at_once_the_second_names_the_first(account, clock):
    account()
    with freeze(clock, run_id="first"), pytest.raises(UsageError, match="first"), freeze(clock, run_id="second"):
        pass


def test_a_freeze_by_another_machine_is_refused(account, clock, monkeypatch, tmp_path):
    account()
    with freeze(clock, run_id="first"):
        monkeypatch.setenv("HEADROOM_STATE_DIR", str(tmp_path / "other"))
        with pytest.raises(UsageError, match="first") as refusal, freeze(clock, run_id="second"):
            pass
        monkeypatch.setenv("HEADROOM_STATE_DIR", str(tmp_path / "state"))
    assert "make thaw" in refusal.value.hint


@pytest.mark.parametrize("count", [2, 5])
def test_pinning_a_larger_fleet_needs_force(account, clock, count):
    fake = account(**endpoint(count))
    with pytest.raises(UsageError, match="take capacity away") as refusal, freeze(clock, force=False):
        pass
    assert "--force" in refusal.value.hint
    assert fake.state["tags"] == {}


def test_foreign_traffic_needs_force(account, clock):
    at = (clock.now() - timedelta(seconds=60)).isoformat()
    account(metrics={"ConcurrentRequestsPerModel": [(at, 4.0)]})
    with pytest.raises(UsageError, match="somebody else"), freeze(clock, force=False):
        pass
    with freeze(clock, force=True):
        pass


def test_our_own_last_load_is_not_foreign(account, clock):
    account(metrics={"ConcurrentRequestsPerModel": [(clock.now().isoformat(), 8.0)]})
    with freeze(clock, force=True):
        clock.sleep(5)
    with freeze(clock, force=False):
        pass


def test_not_in_service_is_refused(account, clock):
    account(**endpoint(1, status="Creating"))
    with pytest.raises(UsageError, match="Creating"), freeze(clock):
        pass


def test_thaw_without_a_journal_unsuspends_and_keeps_the_count(account, clock):
    fake = account(**endpoint(3), target={"min": 1, "max": 4, "suspended": [True, True, True]})
    result = thaw("e", "v", clock=clock)
    assert (result.source, result.restored_count, result.desired_instances) == (None, False, 3)
    assert fake.state["target"]["suspended"] == [False, False, False]


def test_thaw_leaves_a_partial_suspension_alone(account, clock):
    fake = account(target={"min": 1, "max": 4, "suspended": [True, False, False]})
    assert thaw("e", "v", clock=clock).suspended_after == "scale-in"
    assert fake.state["target"]["suspended"] == [True, False, False]


def test_thaw_sets_the_count_it_is_given(account, clock):
    fake = account(**endpoint(1))
    assert thaw("e", "v", 4, clock=clock).restored_count
    assert fake.state["endpoint"]["current"] == 4


def test_thaw_refuses_while_the_run_lives(account, clock):
    account()
    with freeze(clock, run_id="alive"), pytest.raises(UsageError, match="alive"):
        thaw("e", "v", clock=clock)


def test_a_file_whose_freeze_was_thawed_elsewhere_is_dropped(account, clock):
    fake = account(**endpoint(2))
    live = describe("e", "v")
    now = clock.now()
    journals.write_file(journals.new_journal(live, read_target("e", "v"), "old", now, now))
    with fake.edit() as state:
        state["endpoint"].update(desired=3, current=3)
    assert thaw("e", "v", clock=clock).source is None
    assert fake.state["endpoint"]["current"] == 3


def test_a_file_whose_tag_somebody_removed_still_thaws(account, clock):
    fake = account(target={"min": 1, "max": 4, "suspended": [True, True, True]}, **endpoint(1))
    live = describe("e", "v")
    now = clock.now()
    journal = journals.new_journal(live, read_target("e", "v"), "old", now, now)
    journals.write_file(journal.model_copy(update={"suspended": "010", "desired_instances": 3}))
    assert thaw("e", "v", clock=clock).run_id == "old"
    assert fake.state["target"]["suspended"] == [False, True, False]
    assert fake.state["endpoint"]["current"] == 3


def test_a_journal_of_a_deleted_endpoint_blocks_nothing(account, clock):
    account()
    live = describe("e", "v")
    now = clock.now()
    journal = journals.new_journal(live, None, "old", now, now)
    journals.write_file(journal.model_copy(update={"endpoint_created_at": datetime(2025, 1, 1, tzinfo=UTC)}))
    with freeze(clock):
        pass


@pytest.mark.parametrize("suspended", [None, Suspended(True, False, True)])
def test_the_tag_holds_the_journal(account, clock, suspended):
    account()
    live = describe("e", "v")
    journal = journals.new_journal(live, None, "0123456789ab", clock.now(), clock.now() + timedelta(hours=1))
    if suspended:
        journal = journal.model_copy(update={"suspended": suspended.bits, "min_capacity": 1, "max_capacity": 1000})
    journal = journal.model_copy(update={"host": "ip-10-0-0-1.eu.internal", "desired_instances": 17})
    text = journals.to_tag(journal)
    assert len(text) <= 256
    assert journals.from_tag(text, live) == journal


def test_the_longest_names_fit_the_tag(account, clock):
    account()
    journal = journals.new_journal(describe("e", "v"), None, "r" * 60, clock.now(), clock.now())
    big = {"variant": "v" * 63, "host": "h" * 90, "pid": 4194304, "suspended": "111", "min_capacity": 1000}
    text = journals.to_tag(journal.model_copy(update={**big, "max_capacity": 1000, "desired_instances": 1000}))
    assert len(text) < 256
    assert "var=" + "v" * 63 in text
