"""The report: self-contained, complete, accessible, and readable in a browser 400 px wide."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.artifacts.qmax import OpenLoop, OpenLoopRate, Qmax
from planner.artifacts.validate import FleetPoint, ForecastScore, ScalingActivity, Spent, Validation
from planner.errors import UsageError
from planner.report.style import STYLE
from planner.report.svg import ticks
from tests.planner.conftest import ARTICLE, edited

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-web-security",
    "--allow-file-access-from-files",
    "--enable-logging=stderr",
]


class Page(HTMLParser):
    """Tags with their attributes, and the text of headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch(r"h\d", tag):
            self.headings.append(tag)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def directory(files: Path) -> Path:
    main(["plan", "--model", "kokoro-82m", "--artifacts", str(files), "--peak-rps", "5000", "--out", str(files)])
    return files


def add_everything(directory: Path) -> None:
    """An open-loop ladder, a simulation and a live validation beside the rest."""
    qmax = Qmax.load(ARTICLE / "qmax.json")
    rates = [
        OpenLoopRate(
            offered_rps=rate,
            achieved_rps=rate,
            shed_fraction=0.0,
            ttfab_ms=None,
            in_flight_mean=rate / 6,
            concurrency_10s_max=rate / 2,
            metric_ratio=3.0,
            window_s=60,
        )
        for rate in (6.0, 12.0)
    ]
    opened = OpenLoop(
        provenance=qmax.provenance,
        model=qmax.model,
        fingerprint=qmax.fingerprint,
        seed=1,
        slo_ms=3000,
        rates=rates,
    )
    opened.save(directory / "openloop-kokoro-82m-response-stream-g5xlarge-8b1b96bc.json")
    score = {
        "policy": "headroom",
        "setting": "out above 37.5",
        "offered": 10,
        "slo_attainment": 0.5,
        "shed_fraction": 0.5,
        "surge_shed_fraction": None,
        "surge_slo_attainment": None,
        "ttfab_p95_s": 1.0,
        "instance_h": 2.0,
        "usd": None,
        "start_instances": 1,
        "peak_instances": 2,
        "scale_outs": 1,
        "scale_ins": 0,
        "refused_by_quota": 0,
        "flaps": 0,
        "detection_s": None,
        "first_capacity_s": None,
        "kernel": "exact",
    }
    timeline = {
        "end_s": [10.0, 20.0],
        "offered_rps": [5.0, 6.0],
        "served_rps": [5.0, 5.0],
        "shed_fraction": [0.0, 0.1],
        "slo_attainment": [1.0, 0.9],
        "in_service": [1, 2],
        "desired": [2, 2],
        "concurrency_max": [9, 9],
    }
    simulation = {"name": "surge", "inputs": {}, "runs": [{"score": score, "timeline": timeline}]}
    (directory / "simulate-surge.json").write_text(json.dumps(simulation))
    Validation(
        provenance=qmax.provenance,
        model=qmax.model,
        fingerprint=qmax.fingerprint,
        plan_run_id="p",
        qmax_run_id="q",
        started_at=qmax.provenance.created_at,
        start_instances=1,
        base_rps=17.4,
        surge_ratio=1.25,
        surge_s=320,
        seed=1,
        verdict="wrong",
        reasons=["<script>alert(1)</script>"],
        scores=[
            ForecastScore(
                name="shed", source="plan", predicted=0.18, observed=0.25, tolerance=0.05, unit="share", verdict="wrong"
            )
        ],
        stretches=[],
        fleet=[
            FleetPoint(at_s=float(at), desired=1 + at // 60, current=1 + at // 120, status="InService")
            for at in range(0, 300, 20)
        ],
        alarms=[],
        activities=[ScalingActivity(at_s=61.0, description="to 2", cause="alarm", status="Successful")],
        detection_s=61.0,
        scale_out_s=60.0,
        client_late_p99_ms=3.0,
        spent=Spent(minutes=9.0, usd=0.4),
    ).save(directory / "validate-kokoro-82m.json")


def report_of(directory: Path) -> str:
    assert main(["report", "--model", "kokoro-82m", "--artifacts", str(directory)]) == 0
    return (directory / "report-kokoro-82m.html").read_text()


def test_full_report_holds_every_section(directory: Path) -> None:
    add_everything(directory)
    text = report_of(directory)
    for word in (
        "Findings",
        "What one instance carries",
        "How long a new instance takes",
        "The surge at the trigger",
        "Every number and its formula",
        "Under real arrivals",
        "Policies simulated on the same traffic",
        "Plan against the live endpoint",
        "Where this comes from",
        "8b1b96bc4dc0b30ddd84d8fe37af7c490937333c44a9f8f7d77b918c3d7eaced",
        "b8fa8ef48043",
    ):
        assert word in text
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_nothing_is_fetched_or_run(directory: Path) -> None:
    add_everything(directory)
    page = Page(report_of(directory))
    links = [a["href"] or "" for a in page.named("a") + page.named("link")]
    assert links
    assert all(link.startswith("data:") for link in links)
    assert not page.named("script")
    assert not page.named("img")
    assert "url(" not in STYLE
    assert "@import" not in STYLE


def test_downloads_hold_the_data(directory: Path) -> None:
    page = Page(report_of(directory))
    held = {
        a["download"]: base64.b64decode((a["href"] or "").split(",", 1)[1]).decode()
        for a in page.named("a")
        if a.get("download")
    }
    assert "1,0,pass,16.083333333333332" in held["ladder.csv"]
    assert "desired_set,instance_logging" in held["stages.csv"]
    qmax_name = "qmax-kokoro-82m-response-stream-g5xlarge-8b1b96bc.json"
    assert json.loads(held[qmax_name]) == json.loads((directory / qmax_name).read_text())


def test_structure_is_accessible(directory: Path) -> None:
    add_everything(directory)
    text = report_of(directory)
    page = Page(text)
    assert page.headings[0] == "h1"
    assert page.headings.count("h1") == 1
    levels = [int(h[1]) for h in page.headings]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    charts = page.named("svg")
    assert len(charts) >= 10
    for chart in charts:
        assert chart["role"] == "img"
        assert set((chart["aria-labelledby"] or "").split()) <= set(ids)
    assert len(re.findall(r"<desc id=[^>]+>[^<]{20,}", text)) == len(charts)
    assert page.named("html")[0]["lang"] == "en"
    assert text.count("<caption>") == len(page.named("table"))
    assert all(th.get("scope") for th in page.named("th"))


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(c * 2 for c in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(scheme: int) -> None:
    block = re.findall(r":root\{(.*?)\}", STYLE, re.S)[scheme]
    colours = dict(re.findall(r"--(\w+):(#[0-9a-f]+)", block))
    for text in ("ink", "soft"):
        for ground in ("bg", "card"):
            assert contrast(colours[text], colours[ground]) >= 4.5
    for fill in ("ok", "warn", "stop", "c6"):
        assert contrast(colours["on"], colours[fill]) >= 4.5
    for series in range(1, 9):
        assert contrast(colours[f"c{series}"], colours["bg"]) >= 3


@pytest.mark.parametrize("left", [["qmax"], ["ttotal"], ["qmax", "ttotal"]])
def test_partial_evidence_still_makes_a_report(files: Path, left: list[str]) -> None:
    for path in list(files.glob("*.json")):
        if path.name.split("-")[0] not in left:
            path.unlink()
    text = report_of(files)
    assert "No plan yet" in text


def test_ladder_measured_after_the_plan_is_not_mixed_into_its_forecast(directory: Path) -> None:
    newer = {"provenance.run_id": "feedfeedfeed", "provenance.created_at": "2027-01-01T00:00:00Z"}
    path = next(directory.glob("qmax-*.json"))
    edited(path, path, **newer)
    assert "The surge at the trigger" not in report_of(directory)


def test_t_total_that_was_not_reached(files: Path) -> None:
    path = next(files.glob("ttotal-*.json"))
    edited(path, path, t_total_s=None, **{"runs.0.outcome": "no_capacity", "runs.0.t_total_s": None})
    assert "no_capacity" in report_of(files)


def test_nothing_to_report(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing measured for kokoro-82m"):
        main(["report", "--model", "kokoro-82m", "--artifacts", str(tmp_path)])


def test_damaged_simulation_is_named(directory: Path) -> None:
    (directory / "simulate-bad.json").write_text('{"name": "x"}')
    with pytest.raises(UsageError, match=r"simulate-bad\.json"):
        main(["report", "--model", "kokoro-82m", "--artifacts", str(directory)])


@pytest.mark.parametrize(
    ("low", "high", "about", "expected"),
    [(0, 60, 6, [0, 10, 20, 30, 40, 50, 60]), (0, 0.2, 4, [0, 0.05, 0.1, 0.15, 0.2]), (0, 0, 5, [0.0])],
)
def test_ticks(low: float, high: float, about: int, expected: list[float]) -> None:
    assert ticks(low, high, about) == pytest.approx(expected)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [400, 1100])
def test_in_a_browser(directory: Path, tmp_path: Path, width: int) -> None:
    add_everything(directory)
    report_of(directory)
    probe = """
    <iframe id=f width=%d height=900 style="border:0" src="report-kokoro-82m.html"></iframe><pre id=out></pre>
    <script>f.onload = () => { const d = f.contentDocument, seen = [...d.querySelectorAll('svg')].filter(s =>
      s.getBoundingClientRect().width > 0); out.textContent = JSON.stringify({page: d.documentElement.scrollWidth,
      charts: seen.length, widest: Math.max(...seen.map(s => s.getBoundingClientRect().right)),
      drawn: seen.every(s => s.querySelectorAll('path,rect').length > 0 && s.querySelectorAll('text').length > 3),
      outside: seen.flatMap(s => [...s.querySelectorAll('text')].filter(t => { const a = t.getBoundingClientRect(),
      b = s.getBoundingClientRect(); return a.left < b.left - 2 || a.right > b.right + 2 }).map(t => t.textContent)),
      fetched: f.contentWindow.performance.getEntriesByType('resource').length}) }</script>
    """
    (directory / "probe.html").write_text("<!doctype html>" + probe % width)
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,1000"]
    command += ["--virtual-time-budget=4000", "--dump-dom", (directory / "probe.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.S)
    assert found, done.stderr[-2000:]
    seen = json.loads(found.group(1))
    assert seen["page"] <= width
    assert seen["charts"] >= 5
    assert seen["drawn"]
    assert seen["outside"] == []
    assert seen["widest"] <= width
    assert seen["fetched"] == 0
    assert "CONSOLE" not in done.stderr


def test_whole_responses_are_charted_when_they_are_judged(directory: Path) -> None:
    path = next(directory.glob("qmax-*.json"))
    edited(path, path, **{"method.slo_metric": "latency"})
    text = report_of(directory)
    assert "Whole response against concurrency" in text
    assert "50 in flight: p95 2,808 ms" in text


def test_void_rung_is_a_cross(directory: Path) -> None:
    path = next(directory.glob("qmax-*.json"))
    assert 'class="cross"' not in report_of(directory)
    edited(path, path, **{"ladder.3.verdict": "invalid"})
    assert report_of(directory).count('class="cross"') == 2, "once a width"


def test_plan_written_by_other_hands_needs_no_inputs_or_formulas(directory: Path) -> None:
    path = directory / "plan-kokoro-82m.json"
    edited(path, path, inputs={}, formulas=[], cost={})
    text = report_of(directory)
    assert "surge_survival" in text
    assert "The surge at the trigger" not in text
