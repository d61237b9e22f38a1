"""Bad input: exit 2, one message that names what and why, nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.__main__ import main
from planner.errors import ExitCode, HeadroomError
from tests.planner.conftest import ARTICLE, edited

Q, T = ARTICLE / "qmax.json", ARTICLE / "ttotal.json"


def run(out: Path, *flags: str, qmax: Path = Q, ttotal: Path = T, peak: bool = True) -> int:
    rest = ["--peak-rps", "50", "--trough-rps", "5"] if peak else []
    return main(["plan", "--qmax", str(qmax), "--ttotal", str(ttotal), "--out", str(out), *rest, *flags])


def refused(out: Path, *flags: str, code: int = 2, **given: Any) -> str:
    with pytest.raises(HeadroomError) as caught:
        run(out, *flags, **given)
    assert caught.value.exit_code == code
    assert caught.value.hint
    assert not out.exists() or not list(out.iterdir())
    return caught.value.message


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--slo-ms", "2000"], ["2000 ms", "3000 ms", "make qmax"]),
        (["--slo-ms", "60"], ["service time p95 of 66.1 ms"]),
        (["--slo-ms", "70000"], ["past the invocation ceiling of 60 s"]),
        (["--surge-ratio", "1.5"], ["--surge-ratio 1.5", "zero or negative"]),
        (["--surge-ratio", "0.9"], ["--surge-ratio 0.9"]),
        (["--surge-ratio", "nan"], ["--surge-ratio is nan"]),
        (["--min-floor", "0"], ["cannot go below 1 instance"]),
        (["--min-floor", "1" + "0" * 22], ["1e+22 instances or more", "100000"]),
        (["--assume-t-total-s", "-3"], ["--assume-t-total-s is -3.0"]),
        (["--assume-t-total-s", "nan"], ["--assume-t-total-s is nan"]),
        (["--ceiling-s", "0"], ["--ceiling-s is 0.0"]),
        (["--model", "another"], ["--model another", "kokoro-82m"]),
    ],
)
def test_flags(tmp_path: Path, flags: list[str], words: list[str]) -> None:
    message = refused(tmp_path / "out", *flags)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--peak-rps", "5", "--trough-rps", "10"], "under the trough"),
        (["--peak-rps", "0"], "--peak-rps is 0.0"),
        (["--peak-rps", "-5"], "--peak-rps is -5.0"),
        (["--peak-rps", "nan"], "--peak-rps is nan"),
        (["--peak-rps", "1e8"], "instances or more: beyond the 100000"),
        (["--peak-rps", "inf"], "--peak-rps is inf"),
        (["--peak-rps", "5", "--trough-rps", "nan"], "--trough-rps is nan"),
        ([], "one of --peak-rps and --peak-streams"),
        (["--peak-rps", "5", "--peak-streams", "5"], "one of --peak-rps and --peak-streams"),
        (["--peak-streams", "5", "--trough-rps", "5"], "--trough-streams"),
    ],
)
def test_traffic(tmp_path: Path, flags: list[str], words: str) -> None:
    assert words in refused(tmp_path / "out", *flags, peak=False)


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    message = refused(tmp_path / "out", "--peak-rps", "-1", "--surge-ratio", "2", "--slo-ms", "10", peak=False)
    assert "4 problems" in message
    for word in ("--peak-rps is -1.0", "--surge-ratio 2", "SLO 10 ms, but", "service time"):
        assert word in message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fingerprint.instance_type": "ml.g6.xlarge"}, ["instance_type: ml.g5.xlarge against ml.g6.xlarge"]),
        ({"fingerprint.transport": "bidi"}, ["transport: response-stream against bidi"]),
        ({"fingerprint.image_digest": "sha256:" + "0" * 64}, ["image_digest: sha256:8b1b", "against sha256:0000"]),
        ({"fingerprint.workload.corpus": "other"}, ["workload.corpus: short clips", "against other"]),
        ({"fingerprint.container_env": {"PRECISION": "bf16"}}, ["container_env.PRECISION: missing against bf16"]),
        ({"fingerprint": None}, ["fingerprint: present against missing"]),
        ({"model": "piper"}, ["model: kokoro-82m against piper"]),
        ({"t_total_s": 0}, ["t_total_s is 0"]),
        ({"t_total_s": -4.0}, ["t_total_s is -4.0"]),
        ({"t_total_s": float("nan")}, ["t_total_s"]),
        ({"runs.0.durations.2.seconds": -1}, ["container_started → framework_init is -1"]),
        ({"policy_lag.bound_s": -1}, ["policy_lag.bound_s is -1"]),
        ({"schema_version": 99}, ["schema_version 99"]),
        ({"kind": "qmax"}, ["expected 'ttotal'"]),
        ({"provenance.aws_endpoint_url": "http://127.0.0.1:1"}, ["http://127.0.0.1:1", "the two never pair"]),
    ],
)
def test_ttotal_that_does_not_pair(tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
    message = refused(tmp_path / "out", ttotal=edited(T, tmp_path / "t.json", **changes))
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"q_max": 0}, "q_max is 0"),
        ({"q_max": -5}, "q_max is -5"),
        ({"q_max": 45}, "not a usable rung"),
        ({"service_p95_s": 0}, "service_p95_s"),
        ({"service_mean_s": None}, "service_mean_s"),
        ({"ttfab_p95_at_1_ms": -1.0}, "ttfab_p95_at_1_ms"),
        ({"ladder.2.achieved_rps": -1.0}, "achieved_rps is -1, expected 0"),
        ({"ladder": []}, "no usable rung"),
        ({"method.slo_ms": 0}, "method.slo_ms is 0"),
        ({"service_p95_s": float("inf")}, "service_p95_s"),
        ({"q_max": "fifty"}, "q_max"),
        ({"ladder.1.ttfab_ms.p95": 1e300}, "rung 5 ttfab p95 is 1e+300, which nothing measures"),
        ({"ladder.3.service_ms_cv": -1.0}, "service_ms_cv is -1"),
        ({"ladder.6.metric_ratio": 0}, "metric_ratio is 0"),
        ({"ladder.6.concurrency": 5000, "q_max": 5000}, "more than the 2000"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_qmax_with_void_numbers(tmp_path: Path, changes: dict[str, Any], word: str) -> None:
    assert word in refused(tmp_path / "out", qmax=edited(Q, tmp_path / "q.json", **changes))


@pytest.mark.parametrize("text", [Q.read_text()[:400], "", "[]", "\x00\x01", "[" * 10**5, "9" * 5000])
def test_corrupt_files(tmp_path: Path, text: str) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(text)
    assert "broken.json" in refused(tmp_path / "out", qmax=broken)


def test_missing_file_and_directory_given_as_file(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "out", qmax=tmp_path / "absent.json")
    assert "a folder" in refused(tmp_path / "out", qmax=tmp_path)


def test_no_concurrency_meets_the_slo(tmp_path: Path) -> None:
    bad = edited(Q, tmp_path / "q.json", outcome="none_meets_slo", q_max=None)
    assert "no concurrency meets" in refused(tmp_path / "out", qmax=bad, code=ExitCode.FACT_FAILS)


def test_undecided_ladder_and_unmeasured_delay(tmp_path: Path) -> None:
    bad = edited(Q, tmp_path / "q.json", outcome="undecided", q_max=None)
    assert "undecided" in refused(tmp_path / "out", qmax=bad, code=ExitCode.UNDECIDED)
    slow = edited(T, tmp_path / "t.json", t_total_s=None)
    assert "no T_total" in refused(tmp_path / "out", ttotal=slow, code=ExitCode.UNDECIDED)


def test_unwritable_output(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HeadroomError, match=r"file.*cannot be written"):
        run(tmp_path / "file" / "below")


def test_mismatch_may_be_recorded_instead(tmp_path: Path) -> None:
    other = edited(T, tmp_path / "t.json", **{"fingerprint.workload.corpus": "other"})
    assert run(tmp_path / "out", "--allow-config-mismatch", ttotal=other) == 0
    plan = json.loads((tmp_path / "out" / "plan-kokoro-82m.json").read_text())
    verdicts = {f["name"]: f["verdict"] for f in plan["findings"]}
    assert verdicts["fingerprint"] == "warn"
    assert plan["inputs"]["config_mismatches"]


def test_rehearsal_never_pairs_with_aws_even_when_mismatch_is_allowed(tmp_path: Path) -> None:
    other = edited(T, tmp_path / "t.json", **{"provenance.aws_endpoint_url": "http://127.0.0.1:1"})
    assert "never pair" in refused(tmp_path / "out", "--allow-config-mismatch", ttotal=other)


def test_unknown_verb() -> None:
    with pytest.raises(HeadroomError, match="unknown verb 'plann'"):
        main(["plann"])


def test_help_of_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for verb in ("plan", "simulate", "report", "sweep"):
        assert verb in text
    assert main([]) == 2
