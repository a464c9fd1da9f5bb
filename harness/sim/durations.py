"""Task durations, which are drawn when a task starts, as a function of (run seed, job, stage, task, attempt).

Every policy therefore runs the same tasks in any order of execution, and no memory is needed for durations. Random
numbers are a counter-based hash (the finaliser of SplitMix64); logarithm, exponential and the inverse normal
distribution (Wichura, Algorithm AS 241, PPND16) are computed in plain IEEE arithmetic, because the results of C
libraries differ in the last digit between machines.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from harness.sim.kernel import kernel

#: Types of `harness.model.jobs.Duration`, in the order of their codes.
KINDS = ("constant", "lognormal", "exponential", "uniform", "empirical", "listed")
CONSTANT, LOGNORMAL, EXPONENTIAL, UNIFORM, EMPIRICAL, LISTED = range(6)
#: Code of "listed" where some tasks have several attempts. The values are: the offset of each task's attempts, the
#: offset of the end of the last task (both from the first value), and the durations of all attempts.
ATTEMPTS = 6

#: Upper bound of a task's duration (some 34 years), so that sums of times stay far below the limit of int64.
LONGEST_MS = 1 << 40

#: The purposes of draws: independent random streams of one attempt.
STREAM_DURATION, STREAM_FAILS, STREAM_FAILS_AT, STREAM_STRAGGLES = range(4)

_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_S27, _S30, _S31, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
_TO_UNIT = 2.0**-53
_LN2_HI, _LN2_LO = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LOG2_E = 1.4426950408889634


def job_key(seed: int, job_id: str) -> int:
    """Return the 63-bit key of a job's draws, from the run's seed and the job's id."""
    digest = hashlib.blake2b(f"{seed}\0{job_id}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


@kernel
def _mix(z: np.uint64) -> np.uint64:
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@kernel
def unit(key: int, stage: int, task: int, attempt: int, stream: int) -> float:
    """Return a number in (0, 1), the same for the same arguments."""
    z = _mix(np.uint64(key) + _GAMMA)
    z = _mix(z ^ (np.uint64(stage) * np.uint64(4) + np.uint64(stream)) * _GAMMA)
    z = _mix(z ^ (np.uint64(task) * np.uint64(256) + np.uint64(attempt) + np.uint64(1)) * _GAMMA)
    return (float(z >> _S11) + 0.5) * _TO_UNIT


@kernel
def log_portable(x: float) -> float:
    """Return the natural logarithm of a positive finite number, with a relative error below 1e-15."""
    m, e = math.frexp(x)
    if m < 0.7071067811865476:
        m *= 2.0
        e -= 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    # atanh series: ln m = 2 (s + s^3/3 + s^5/5 + ...), abs(s) < 0.172, so z^12 is below double precision.
    p = 0.0
    for k in range(12, 0, -1):
        p = (p + 1.0 / (2 * k + 1)) * z
    return e * _LN2_HI + (2.0 * s * (1.0 + p) + e * _LN2_LO)


#: Coefficients 1 / k! of the exponential series.
_PART = tuple(1.0 / math.factorial(k) for k in range(14))


@kernel
def _power_of_2(k: int) -> float:
    """Return 2^k for -1022 <= k <= 1023."""
    return np.int64((k + 1023) << 52).view(np.float64)


@kernel
def exp_portable(x: float) -> float:
    """Return e^x with a relative error of about 1e-15; infinity above 709.7, 0 below -745."""
    if x > 709.7:
        return math.inf
    if x < -745.0:
        return 0.0
    k = math.floor(x * _LOG2_E + 0.5)
    r = (x - k * _LN2_HI) - k * _LN2_LO
    # abs(r) < 0.347, so that r^14 / 14! is below double precision. Terms are summed in pairs, which a processor can
    # compute in parallel.
    z = r * r
    low = (_PART[2] + _PART[3] * r) + (_PART[4] + _PART[5] * r) * z
    middle = (_PART[6] + _PART[7] * r) + (_PART[8] + _PART[9] * r) * z
    high = (_PART[10] + _PART[11] * r) + (_PART[12] + _PART[13] * r) * z
    p = 1.0 + (r + z * (low + (z * z) * (middle + (z * z) * high)))
    half = int(k) // 2  # the whole power would overflow or underflow
    return p * _power_of_2(half) * _power_of_2(int(k) - half)


# Coefficients of the numerators and denominators of AS 241, highest power first.
# fmt: off
_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)
_TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)
# fmt: on


#: The coefficients of a polynomial of degree 7, the highest power first.
_Coefficients = tuple[float, float, float, float, float, float, float, float]


@kernel
def _polynomial(of: _Coefficients, r: float) -> float:
    """Evaluate a polynomial of degree 7; its terms are summed in pairs, which a processor can compute in parallel."""
    square: float = r * r
    high: float = (of[0] * r + of[1]) * square + (of[2] * r + of[3])
    low: float = (of[4] * r + of[5]) * square + (of[6] * r + of[7])
    return high * (square * square) + low


@kernel
def _fraction(
    of: tuple[_Coefficients, _Coefficients],
    r: float,
) -> tuple[float, float]:
    """Return the numerator and the denominator of a rational function at r."""
    return _polynomial(of[0], r), _polynomial(of[1], r)


@kernel
def normal_quantile(p: float) -> float:
    """Return the p-quantile of the standard normal distribution, 0 < p < 1 (AS 241, relative accuracy about 1e-16)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        num, den = _fraction(_CENTRE, 0.180625 - q * q)
        return q * num / den
    r = p if q < 0.0 else 1.0 - p
    r = math.sqrt(-log_portable(r))
    num, den = _fraction(_TAIL, r - 1.6) if r <= 5.0 else _fraction(_FAR_TAIL, r - 5.0)
    return -num / den if q < 0.0 else num / den


@kernel
def draw_ms(u: float, kind: int, a: float, b: float, values: NDArray[np.float64], first: int, count: int) -> float:
    """Return a duration, ms (not rounded), as the u-quantile of a distribution.

    Parameters
    ----------
    u
        A number in (0, 1).
    kind
        CONSTANT, LOGNORMAL, EXPONENTIAL, UNIFORM or EMPIRICAL. The caller handles LISTED, which needs no draw.
    a, b
        LOGNORMAL: mu and sigma of the logarithm of seconds; UNIFORM: bounds, s; CONSTANT and EXPONENTIAL: ``a`` is the
        value or the mean, s.
    values, first, count
        EMPIRICAL: the durations ``values[first:first + count]``, s.
    """
    if kind == LOGNORMAL:
        seconds = exp_portable(a + b * normal_quantile(u))
    elif kind == EXPONENTIAL:
        seconds = -a * log_portable(u)
    elif kind == UNIFORM:
        seconds = a + (b - a) * u
    elif kind == EMPIRICAL:
        seconds = values[first + min(int(u * count), count - 1)]
    else:
        seconds = a
    return seconds * 1000.0


@kernel
def whole_ms(ms: float) -> int:
    """Round to integer milliseconds, half up; the result is at least 1 and at most LONGEST_MS."""
    if not ms < LONGEST_MS:
        return LONGEST_MS
    return max(1, math.floor(ms + 0.5))


@kernel
def calibration_loop(table: np.ndarray, steps: int) -> int:
    """Run fixed work to compare machines by (``yarnfair bench``): per step a hash, a dependent access and a branch."""
    z = np.uint64(1)
    mask = np.uint64(len(table) - 1)
    odd = 0
    for _ in range(steps):
        z = _mix(z + _GAMMA)
        at = z & mask
        value = table[at]
        if value & 1:
            odd += 1
        table[at] = value + 1
        z ^= np.uint64(value)
    return odd
