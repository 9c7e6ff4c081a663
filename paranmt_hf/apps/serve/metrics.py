"""What a server counts, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)  # Seconds, upper ends of the buckets


class Metrics:
    """Counts requests, errors and sentences, and how long answers took."""

    def __init__(self) -> None:
        self.requests, self.sentences = Counter[tuple[str, int]](), 0
        self._seconds: dict[str, float] = {}
        self._buckets: dict[str, list[int]] = {}

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self.requests[route, status] += 1
        self._seconds[route] = self._seconds.get(route, 0) + seconds
        self._buckets.setdefault(route, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1

    def text(self) -> str:
        """Format all figures."""
        lines, errors = ["# TYPE paranmt_requests_total counter"], Counter[str]()
        for (route, status), number in sorted(self.requests.items()):
            lines.append(f'paranmt_requests_total{{route="{route}",status="{status}"}} {number}')
            errors[route] += number if status >= 400 else 0
        lines.append("# TYPE paranmt_errors_total counter")
        lines += [f'paranmt_errors_total{{route="{route}"}} {number}' for route, number in errors.items()]
        lines += ["# TYPE paranmt_sentences_total counter", f"paranmt_sentences_total {self.sentences}"]
        lines.append("# TYPE paranmt_request_seconds histogram")
        for route, counts in sorted(self._buckets.items()):
            for bound, number in zip((*BOUNDS, "+Inf"), accumulate(counts), strict=True):
                lines.append(f'paranmt_request_seconds_bucket{{route="{route}",le="{bound}"}} {number}')
            lines.append(f'paranmt_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'paranmt_request_seconds_count{{route="{route}"}} {sum(counts)}')
        return "\n".join(lines) + "\n"
