"""Rates players by the model of Bradley and Terry with Davidson's draws, by a general optimiser and a numerical Hessian.

Elo is scaled so that the expected score rises as steeply between equals as it does where nobody draws: the slope is found
numerically, from the model's probabilities.

Standard input: {"cases": [{"name": ..., "players": 3, "games": [[first, second, wins, draws, losses], ...],
"ratings": [[elo, low, high], ...], "superiority": [[0.5, ...], ...]}, ...]}
"""

import json
import sys

import numpy
from scipy.optimize import minimize
from scipy.stats import norm

ELO = 400 / numpy.log(10)


def cost(parameters, case):
    """Minus the logarithm of the likelihood, with one imagined game of everybody and one for the draws."""
    strength, draws = parameters[:-1], parameters[-1]
    total = 0.0
    for first, second, won, drawn, lost in case["games"]:
        one, other = strength[first], strength[second]
        tie = draws + (one + other) / 2
        whole = numpy.logaddexp(numpy.logaddexp(one, other), tie)
        total += won * (one - whole) + lost * (other - whole) + drawn * (tie - whole)
    total += numpy.sum(strength / 2 - numpy.logaddexp(strength, 0))
    total += draws / 2 - numpy.logaddexp(draws, numpy.log(2))
    return -total


def hessian(parameters, case, step=1e-3):
    size = len(parameters)
    unit = numpy.eye(size) * step
    result = numpy.zeros((size, size))
    for row in range(size):
        for column in range(row + 1):
            value = (
                cost(parameters + unit[row] + unit[column], case)
                - cost(parameters + unit[row] - unit[column], case)
                - cost(parameters - unit[row] + unit[column], case)
                + cost(parameters - unit[row] - unit[column], case)
            ) / (4 * step * step)
            result[row, column] = result[column, row] = value
    return result


def expected_score(difference, draws):
    won, lost, drawn = numpy.exp(difference / 2), numpy.exp(-difference / 2), numpy.exp(draws)
    return (won + drawn / 2) / (won + lost + drawn)


def ratings(parameters, step=1e-4):
    """Elo above the mean; the logistic curve of Elo has a slope of 1/4 in natural units."""
    strength, draws = parameters[:-1], parameters[-1]
    slope = (expected_score(step, draws) - expected_score(-step, draws)) / (2 * step)
    return (strength - strength.mean()) * ELO * slope / 0.25


def jacobian(function, parameters, step=1e-4):
    unit = numpy.eye(len(parameters)) * step
    return numpy.array([(function(parameters + row) - function(parameters - row)) / (2 * step) for row in unit]).T


def check(case):
    size = case["players"]
    found = minimize(cost, numpy.zeros(size + 1), args=(case,), method="BFGS", options={"gtol": 1e-7})
    strength = found.x[:-1]
    whole = numpy.linalg.inv(hessian(found.x, case))
    covariance = whole[:size, :size]
    slopes = jacobian(ratings, found.x)
    deviation = numpy.sqrt(numpy.diag(slopes @ whole @ slopes.T))
    for player, (elo, low, high) in enumerate(case["ratings"]):
        theirs = ratings(found.x)[player]
        margin = norm.ppf(0.975) * deviation[player]
        for ours, expected in [(elo, theirs), (low, theirs - margin), (high, theirs + margin)]:
            if abs(ours - expected) > 0.05 + 0.001 * abs(expected):
                sys.exit(f"{case['name']}, player {player}: {ours}, not {expected}")
    for first in range(size):
        for second in range(size):
            if first != second:
                share = numpy.zeros(size)
                share[first], share[second] = 1, -1
                expected = norm.cdf((strength[first] - strength[second]) / numpy.sqrt(share @ covariance @ share))
                if abs(case["superiority"][first][second] - expected) > 1e-3:
                    sys.exit(f"{case['name']}: superiority {case['superiority'][first][second]}, not {expected}")
    return size


print(sum(check(case) for case in json.load(sys.stdin)["cases"]))
