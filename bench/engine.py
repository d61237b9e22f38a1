"""Engines side by side: upstream behind a lock (the published design) against ours, on the same texts.

Closed loop: N callers, each with one request outstanding, taking turns between the designs so that a busy machine
slows all of them alike. ``python -m bench.engine --concurrency 1,8 --seconds 10``
"""

from __future__ import annotations

import argparse
import json
import queue
import resource
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from container.engine.base import SAMPLE_RATE_HZ, Prepared, Segment
from container.engine.factory import make_engine
from container.engine.shapes import padding_waste
from container.settings import Settings
from container.weights import resolve
from container.weights.vocabulary import TOKENS, VOCABULARY

CORPUS = (
    "Ready?",
    "Good morning.",
    "The door is open now.",
    "Please wait here a moment.",
    "Your order left the warehouse.",
    "The next train leaves at a quarter past.",
    "I could not find that; shall I look again?",
    "Turn left after the bridge, then keep straight on.",
    "The weather stays dry until the late afternoon today.",
    "Thank you for calling, somebody will be with you shortly.",
)
"""6 to 61 characters, as in the published corpus."""

Speak = Callable[[str], float]
"""Blocks until the request is spoken; seconds of audio."""


@dataclass(frozen=True, slots=True)
class Result:
    design: str
    concurrency: int
    requests: int
    rps: float
    audio_s_per_s: float
    ttfab_p50_ms: float
    ttfab_p95_ms: float
    padding_waste: float
    peak_mib: float


class Locked:
    """Upstream's model, one request at a time."""

    name = "stock, one at a time"
    waste = 0.0

    def __init__(self, settings: Settings) -> None:
        import torch

        from container.engine.g2p import Phonemiser
        from container.engine.precision import choose_device

        self._torch, self._lock, self._phonemise = torch, threading.Lock(), Phonemiser()
        self._device = choose_device(settings.device)
        model = resolve(settings.model_dir, settings.weights_dir, settings.weights_source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from kokoro import KModel

            self._model: Any = KModel(repo_id="hexgrad/Kokoro-82M", config=UPSTREAM, model=str(model.checkpoint))
        self._model.to(self._device).eval()
        self._voice = torch.load(next(iter(model.voice_files.values())), weights_only=True).to(self._device)

    def __call__(self, text: str) -> float:
        return len(self.speak(text)) / SAMPLE_RATE_HZ

    def speak(self, text: str) -> Any:
        """Samples."""
        with self._lock:
            phonemes = self._phonemise(text)
            return self._model(phonemes, self._voice[len(phonemes) - 1], 1.0).numpy()


class Served:
    """One of our engines: lanes that take what waits, up to the largest batch."""

    def __init__(self, name: str, settings: Settings, max_batch: int | None = None) -> None:
        self.name, self._engine = name, make_engine(settings)
        self._engine.load(lambda _stage: None)
        self._max_batch = max_batch or self._engine.max_batch
        self._waiting: queue.Queue[tuple[Prepared, Future[float]]] = queue.Queue()
        self._wastes: list[float] = []
        for _ in range(self._engine.lanes):
            threading.Thread(target=self._lane, daemon=True).start()

    @property
    def waste(self) -> float:
        return statistics.fmean(self._wastes) if self._wastes else 0.0

    def __call__(self, text: str) -> float:
        prepared = self._engine.prepare([Segment(text, self._engine.voices()[0])])[0]
        done: Future[float] = Future()
        self._waiting.put((prepared, done))
        return done.result()

    def _lane(self) -> None:
        while True:
            batch = [self._waiting.get()]
            while len(batch) < self._max_batch and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            audio = self._engine.synthesise([prepared for prepared, _ in batch])
            lengths = [len(samples) for samples in audio]
            self._wastes.append(padding_waste(lengths, len(lengths), max(lengths)))
            for (_, done), samples in zip(batch, audio, strict=True):
                done.set_result(len(samples) / SAMPLE_RATE_HZ)


def closed_loop(design: Any, concurrency: int, seconds: float) -> Result:
    """TTFAB is the whole request here: every text is one segment."""
    records: list[tuple[float, float]] = []
    start = time.perf_counter()

    def caller(first: int) -> None:
        turn = first
        while time.perf_counter() - start < seconds or not records:
            sent = time.perf_counter()
            audio_s = design(CORPUS[turn % len(CORPUS)])
            records.append((time.perf_counter() - sent, audio_s))
            turn += 1

    callers = [threading.Thread(target=caller, args=(index,)) for index in range(concurrency)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    elapsed_s = time.perf_counter() - start
    waits_ms = sorted(wait_s * 1e3 for wait_s, _ in records)
    return Result(
        design.name,
        concurrency,
        len(records),
        len(records) / elapsed_s,
        sum(audio_s for _, audio_s in records) / elapsed_s,
        waits_ms[len(waits_ms) // 2],
        waits_ms[min(len(waits_ms) - 1, int(len(waits_ms) * 0.95))],
        design.waste,
        peak_mib(),
    )


def peak_mib() -> float:
    """Device memory on a GPU, resident memory of this whole process elsewhere."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def designs(settings: Settings, precisions: Sequence[str], with_int8: bool) -> list[Any]:
    found: list[Any] = [Locked(settings)]
    for precision in precisions:
        ours = replace(settings, precision=precision)
        served = Served(f"ours {precision}, batch 1", replace(ours, max_batch=1))
        found.append(served)
        if served._engine.lanes == 1 or settings.max_batch:
            found.append(Served(f"ours {precision}, batched", ours))
    if with_int8:
        found.append(Served("ours int8 export", replace(settings, engine="onnx")))
    return found


def table(results: Sequence[Result]) -> str:
    stock = {r.concurrency: r for r in results if r.design == Locked.name}
    lines = [
        "| design | N | requests/s | ratio | audio s/s | TTFAB p50 ms | p95 ms | padding | peak MiB | n |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        ratio = f"{r.rps / stock[r.concurrency].rps:.2f}" if r.concurrency in stock else ""
        lines.append(
            f"| {r.design} | {r.concurrency} | {r.rps:.2f} | {ratio} | {r.audio_s_per_s:.2f} | {r.ttfab_p50_ms:.0f} "
            f"| {r.ttfab_p95_ms:.0f} | {r.padding_waste:.0%} | {r.peak_mib:.0f} | {r.requests} |"
        )
    return "\n".join(lines)


UPSTREAM: dict[str, Any] = {
    "vocab": VOCABULARY, "n_token": TOKENS, "hidden_dim": 512, "style_dim": 128, "n_layer": 3, "max_dur": 50,
    "n_mels": 80, "dim_in": 64, "dropout": 0.2, "text_encoder_kernel_size": 5,
    "istftnet": {
        "upsample_rates": [10, 6], "upsample_kernel_sizes": [20, 12], "gen_istft_n_fft": 20, "gen_istft_hop_size": 5,
        "resblock_kernel_sizes": [3, 7, 11], "resblock_dilation_sizes": [[1, 3, 5]] * 3,
        "upsample_initial_channel": 512,
    },
    "plbert": {
        "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 2048, "max_position_embeddings": 512,
        "num_hidden_layers": 12, "dropout": 0.1,
    },
}  # fmt: skip
"""Upstream's published config.json."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__.splitlines()[0])
    parser.add_argument("--concurrency", default="1,4,16,50", help="callers, comma separated")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each cell, split into rounds")
    parser.add_argument("--rounds", type=int, default=2, help="turns each design takes")
    parser.add_argument("--precisions", default="auto", help="auto, fp32, bf16, fp16; comma separated")
    parser.add_argument("--int8", action="store_true", help="include the int8 export")
    parser.add_argument("--max-batch", type=int, help="largest batch of ours")
    parser.add_argument("--json", type=Path, help="write the raw results there")
    args = parser.parse_args(argv)
    settings = replace(Settings.from_env(), max_batch=args.max_batch)
    found = designs(settings, args.precisions.split(","), args.int8)
    for design in found:
        for text in CORPUS[::3]:
            design(text)
    results = []
    for concurrency in map(int, args.concurrency.split(",")):
        rounds = [[closed_loop(d, concurrency, args.seconds / args.rounds) for d in found] for _ in range(args.rounds)]
        results += [merged(cells) for cells in zip(*rounds, strict=True)]
        print(f"concurrency {concurrency} done", file=sys.stderr)
    print(table(results))
    if args.json:
        args.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    return 0


def merged(cells: Sequence[Result]) -> Result:
    """One line of a cell's rounds: rates averaged, the worst percentiles kept."""
    return replace(
        cells[-1],
        requests=sum(c.requests for c in cells),
        rps=statistics.fmean(c.rps for c in cells),
        audio_s_per_s=statistics.fmean(c.audio_s_per_s for c in cells),
        ttfab_p50_ms=max(c.ttfab_p50_ms for c in cells),
        ttfab_p95_ms=max(c.ttfab_p95_ms for c in cells),
    )


if __name__ == "__main__":
    sys.exit(main())
