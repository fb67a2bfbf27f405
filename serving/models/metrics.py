"""Metrics: the service's Prometheus metrics, summed over workers through shared files."""

from __future__ import annotations

import os
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from serving.models.batcher import RunRecord

# prometheus_client's own variable; set before this module is imported
SHARED = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.033, 0.05, 0.1, 0.2, 0.5, 1, 5)
SHORT = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.033, 0.1, 1)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "repertoire_requests", "Requests answered", ["route", "status"], registry=registry
        )
        help_text = "From a request's head to its reply sent, without the hold of a refusal"
        self.seconds = Histogram(
            "repertoire_request_seconds", help_text, ["route"], registry=registry, buckets=SECONDS
        )
        help_text = "Rows in one run of a graph"
        self.rows = Histogram(
            "repertoire_batch_rows", help_text, ["skill"], registry=registry, buckets=ROWS
        )
        help_text = "How long the first request of a run waited for it"
        self.waited = Histogram(
            "repertoire_queue_seconds", help_text, ["skill"], registry=registry, buckets=SHORT
        )
        help_text = "How long one run of a graph took"
        self.runs = Histogram(
            "repertoire_run_seconds", help_text, ["skill"], registry=registry, buckets=SHORT
        )
        help_text = "References that came to mean another version (moved), or could not (failed)"
        self.swaps = Counter("repertoire_swaps", help_text, ["outcome"], registry=registry)
        help_text = "Open WebSocket sessions"
        self.sessions = Gauge(
            "repertoire_sessions", help_text, registry=registry, multiprocess_mode="livesum"
        )

        # Cached: `labels` looks a series up under a lock, a tenth of a request's cost here.
        self._series = lru_cache(512)(
            lambda route, status: (self.requests.labels(route, status), self.seconds.labels(route))
        )
        self._runs = lru_cache(512)(
            lambda ref: (self.rows.labels(ref), self.waited.labels(ref), self.runs.labels(ref)),
        )

    def count_request(self, route: str, status: int, seconds: float) -> None:
        requests, durations = self._series(route, status)
        requests.inc()
        durations.observe(seconds)

    def count_run(self, ref: str, ran: RunRecord) -> None:
        rows, waited, runs = self._runs(ref)
        rows.observe(ran.rows)
        waited.observe(ran.waited)
        runs.observe(ran.seconds)

    def count_swap(self, outcome: str) -> None:
        self.swaps.labels(outcome).inc()

    def text(self) -> bytes:
        """The metrics of all workers together."""
        if SHARED not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)

    def close(self) -> None:
        if SHARED in os.environ:
            mark_process_dead(os.getpid())  # its sessions are over; its counts stay
