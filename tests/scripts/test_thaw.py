"""What thaw says."""

from __future__ import annotations

import json

import pytest

from planner.errors import UsageError
from scripts import thaw

FLAGS = ["--endpoint", "e", "--variant", "v"]
ALL = {"min": 1, "max": 4, "suspended": [True, True, True]}


def test_nothing_is_frozen(account, capsys):
    account()
    assert thaw.main(FLAGS) == 0
    assert "nothing is frozen" in capsys.readouterr().out


def test_without_a_note_the_count_is_said_to_be_unknown(account, capsys):
    account(target=ALL)
    assert thaw.main(FLAGS) == 0
    shown = capsys.readouterr().out
    assert "no journal and no tag; scaling un-suspended" in shown
    assert "pass --desired N" in shown


def test_json(account, capsys):
    account(target=ALL)
    assert thaw.main([*FLAGS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["suspended_after"] == "nothing"


def test_zero_instances_are_no_count(account):
    account()
    with pytest.raises(UsageError, match="--desired 0"):
        thaw.main([*FLAGS, "--desired", "0"])
