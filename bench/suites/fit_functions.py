#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fits the polynomials of kernels/host/Functions.h (needs mpmath).

Each has the least squares of its error at Chebyshev's points, with
coefficients that are then rounded to their type one after the other, from the
lowest on, the rest being fitted anew. Prints them and the largest error."""
import re

import mpmath as mp

mp.mp.prec = 200


def rounded(value, bits):
    mantissa, exponent = mp.frexp(value)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def solve(function, weight, powers, low, high):
    """Coefficients of x^p for p in powers with the least squares of weight *
    error at Chebyshev's points, and the largest error."""
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle - half * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / 150) for k in range(150)]
    rows = mp.matrix([[weight(x) * x ** p for p in powers] for x in points])
    wanted = mp.matrix([weight(x) * function(x) for x in points])
    found = mp.lu_solve(rows.T * rows, rows.T * wanted)
    return list(found), max(abs(e) for e in rows * found - wanted)


def fit(name, function, weight, powers, low, high, bits):
    low, high = mp.mpf(low), mp.mpf(high)
    fixed, rest = {}, list(powers)
    while rest:
        part = lambda x: function(x) - sum(c * x ** p for p, c in fixed.items())
        coefficients, worst = solve(part, weight, rest, low, high)
        fixed[rest[0]] = rounded(coefficients[0], bits)
        rest.pop(0)
    suffix = "f" if bits == 24 else ""
    print(f"// {name}: error 2^{float(mp.log(worst, 2)):.1f}")
    text = [re.sub(r"0+p", "p", float(fixed[p]).hex()) for p in powers]
    print("{" + ", ".join(t + suffix for t in text) + "}")


def series(term, x, count=60):
    return mp.fsum(term(k) * x ** k for k in range(count))


one = lambda x: mp.mpf(1)
# e^r = 1 + r + r^2 p(r)
h = mp.log(2) / 2 * mp.mpf("1.001")
after = lambda skip: lambda r: series(lambda k: 1 / mp.factorial(k + skip), r)
fit("exp f32: (e^r - 1 - r) / r^2", after(2), lambda r: r * r, range(0, 5), -h, h, 24)
fit("exp f64: (e^r - 1 - r) / r^2", after(2), lambda r: r, range(0, 7), -h, h, 53)
l2 = mp.log(2)
fit("exp2 f32: (2^r - 1) / r", lambda r: series(lambda k: l2 ** (k + 1) / mp.factorial(k + 1), r), lambda r: r, range(0, 6), -mp.mpf("0.501"), mp.mpf("0.501"), 24)
# log(1 + r) = r - r^2 / 2 + r^3 q(r)
fit("exp of f64: (e^r - 1 - r) / r^2", after(2), lambda r: r * r, range(0, 11), -h, h, 53)
q = lambda r: series(lambda k: (-1) ** k / mp.mpf(k + 3), r, 200)
fit("log f32: (log(1 + r) - r + r^2/2) / r^3", q, lambda r: r * r * r / mp.log(1 + r), range(0, 8), mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1, 24)
# log(m) = 2 atanh(s), s = (m - 1) / (m + 1), z = s^2
s = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
fit("log f64: (2 atanh(s) / s - 2) / s^2 of s^2", lambda z: series(lambda k: 2 / mp.mpf(2 * k + 3), z), lambda z: z, range(0, 5), 0, s * s * mp.mpf("1.001"), 53)
fit("log of f64: (2 atanh(s) / s - 2) / s^2 of s^2", lambda z: series(lambda k: 2 / mp.mpf(2 * k + 3), z), lambda z: z, range(0, 7), 0, s * s * mp.mpf("1.001"), 53)
# erf
c = 2 / mp.sqrt(mp.pi)
fit("erf f32: erf(x) / x - 1 of x^2", lambda z: series(lambda k: c * (-1) ** k / (mp.factorial(k) * (2 * k + 1)), z) - 1, one, range(0, 7), 0, 1, 24)
fit("erf f32: log2(erfc(1 + t)) of t in 0..3", lambda t: mp.log(mp.erfc(1 + t)) / mp.log(2), lambda t: mp.erfc(1 + t), range(0, 7), 0, 3, 24)
# erfc(x) = t e^(-x^2 + p(t)), t = 2 / (2 + x), of x >= 0; of t - 0.6
def erfcFit(u):
    t = u + mp.mpf("0.5")
    x = 2 / t - 2
    return mp.log(mp.erfc(x) / t) + x * x
fit("erfc f64: log(erfc(x) / t) + x^2 of t - 0.5", erfcFit, one, range(0, 15), 2 / (2 + mp.mpf("10.2")) - mp.mpf("0.5"), mp.mpf("0.5"), 53)
# atan(s) / s
fit("atan f64: (atan(s) / s - 1) / s^2 of s^2", lambda z: series(lambda k: (-1) ** (k + 1) / mp.mpf(2 * k + 3), z, 200), lambda z: z, range(0, 8), 0, (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.001"), 53)
# asin(s) / s
term = lambda k: mp.factorial(2 * k + 2) / (mp.mpf(4) ** (k + 1) * mp.factorial(k + 1) ** 2 * (2 * k + 3))
fit("asin f64: (asin(s) / s - 1) / s^2 of s^2", lambda z: series(term, z, 120), lambda z: z, range(0, 10), 0, mp.mpf("0.2501"), 53)
# sin, cos of -pi/4..pi/4
quarter = (mp.pi / 4 * mp.mpf("1.001")) ** 2
fit("sin f64: (sin(x) / x - 1) / x^2 of x^2", lambda z: series(lambda k: (-1) ** (k + 1) / mp.factorial(2 * k + 3), z), lambda z: z, range(0, 5), 0, quarter, 53)
fit("cos f64: (cos(x) - 1) / x^2 of x^2", lambda z: series(lambda k: (-1) ** (k + 1) / mp.factorial(2 * k + 2), z), lambda z: z, range(0, 5), 0, quarter, 53)
fit("tanh f32: (tanh(x) / x - 1) of x^2", lambda z: mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1, one, range(1, 7), 0, mp.mpf("0.5"), 24)
erfOver = lambda z: series(lambda k: c * (-1) ** k / (mp.factorial(k) * (2 * k + 1)), z) - 1
fit("erf of f64: erf(x) / x - 1 of x^2", erfOver, one, range(0, 14), 0, 1, 53)
fit("erf of f64: log(erfc(1 + t)) of t in 0..5", lambda t: mp.log(mp.erfc(1 + t)), lambda t: mp.erfc(1 + t), range(0, 22), 0, 5, 53)
fit("tanh of f64: (tanh(x) / x - 1) of x^2", lambda z: mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1, one, range(1, 12), 0, mp.mpf("0.3907"), 53)
