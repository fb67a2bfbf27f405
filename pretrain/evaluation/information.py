"""Information of a library's motion about z."""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar
from scipy.special import gammaln, ive

LARGEST = 14.0  # log of the largest concentration that is tried


def information_bound(mean_cosine: float, dim: int) -> float | None:
    """Lower bound of the information between z and window, nats, from mean <z, enc(window)>.

    z is uniform on the unit sphere in `dim` dimensions. With a von Mises-Fisher distribution of
    concentration kappa about the code as the variational posterior, the bound of Barber and Agakov
    (2003) is kappa * mean_cosine + log C(kappa) - log C(0), C its normalizer, at the best kappa.
    Unlike cosines, nats are comparable between dimensions. None for fewer than 2 dimensions."""
    if dim < 2:
        return None
    if mean_cosine <= 0:
        return 0.0

    def negative_bound(log_kappa: float) -> float:
        kappa = math.exp(log_kappa)
        return -(kappa * mean_cosine + _log_normalizer(kappa, dim) - _log_normalizer(0.0, dim))

    best = minimize_scalar(negative_bound, bounds=(-10.0, LARGEST), method="bounded")
    return max(0.0, -float(best.fun))


def _log_normalizer(kappa: float, dim: int) -> float:
    """log C of the density C exp(kappa <mean, z>) on the sphere in `dim` dimensions."""
    order = dim / 2 - 1
    if kappa == 0.0:
        return float(gammaln(dim / 2)) - math.log(2) - dim / 2 * math.log(math.pi)
    # ive is the Bessel function I over exp(kappa), which would overflow
    bessel = math.log(float(ive(order, kappa))) + kappa
    return order * math.log(kappa) - dim / 2 * math.log(2 * math.pi) - bessel
