"""Means with their 95 % intervals, as plain JSON; without data the mean is None, never NaN."""

from __future__ import annotations

from typing import Any

from scipy.special import gammaincinv, stdtrit
from torch import Tensor

Interval = dict[str, Any]  # n, mean, interval [low, high]
Z95 = 1.96  # half width of a normal 95 % interval, in standard deviations


def mean(x: Tensor) -> float | None:
    """Mean of x (n,); None where n is 0."""
    return float(x.mean()) if len(x) else None


def interval(x: Tensor) -> Interval:
    """n, mean and the 95 % interval of the mean of x (n,), by Student's t; None for n < 2."""
    middle = mean(x)
    n = len(x)
    if n < 2:
        return {"n": n, "mean": middle, "interval": None}
    half = float(stdtrit(n - 1, 0.975) * x.std()) / n**0.5
    return {"n": n, "mean": middle, "interval": [middle - half, middle + half]}


def share_interval(x: Tensor) -> Interval:
    """n, mean and the 95 % interval of the share of ones in x (n,).

    It stays within 0 and 1 and has a width at both ends. (Wilson 1927, "Probable inference, the
    law of succession, and statistical inference".)
    """
    n = len(x)
    share = mean(x)
    if share is None:
        return {"n": 0, "mean": None, "interval": None}
    middle = share + Z95**2 / (2 * n)
    half = Z95 * (share * (1 - share) / n + Z95**2 / (4 * n**2)) ** 0.5
    ends = [(middle - half) / (1 + Z95**2 / n), (middle + half) / (1 + Z95**2 / n)]
    return {"n": n, "mean": share, "interval": ends}


def rate_interval(events: int, exposure: float, n: int) -> Interval:
    """Events per unit of `exposure`, seen in n worlds, with the exact 95 % Poisson interval.

    It has a width also without events. (Garwood 1936, "Fiducial limits for the Poisson
    distribution".)"""
    if exposure <= 0:
        return {"n": 0, "mean": None, "interval": None}
    low = float(gammaincinv(events, 0.025)) if events else 0.0
    high = float(gammaincinv(events + 1, 0.975))
    return {
        "n": n,
        "events": events,
        "exposure": exposure,
        "mean": events / exposure,
        "interval": [low / exposure, high / exposure],
    }
