"""The marginal function of the L1-SVM: the paper's, with hinge loss and a free bias.

SLMC (28)–(30), for all columns of a table of labels at once:

    W(Z)  =  Σ_p min over β, b of  ½ βᵀK_zβ + C Σ_i s_i max(0, 1 − y_ip (ψ_z(x_i)ᵀβ + b)).

A label +1 asks for a score in [1, ∞) and −1 for one in (−∞, −1], with slopes C s outside: these are
intervals (``interval_marginal``), whose dual is (37)–(39) in yα.
"""

from __future__ import annotations

import numpy as np

from widemargin.intervals import IntervalProblem
from widemargin.loop import Deadline
from widemargin.problem import Problem
from widemargin.sparse.interval_marginal import Intervals


class Hinge(Intervals):
    """W(Z) and ∇W(Z) of the L1-SVM for several problems.

    Parameters
    ----------
    problem : Problem
        Rows with labels and weights, and a kernel with a gradient. In every problem both labels
        must occur.
    deadline : Deadline, default=None
        When to leave it at the steps that are done.
    """

    def __init__(self, problem: Problem, deadline: Deadline | None = None) -> None:
        sign, price = problem.signs(), problem.weight[:, None] * problem.C
        ends = (sign, sign, np.where(sign > 0, price, 0.0), np.where(sign < 0, price, 0.0))
        none = np.zeros(problem.n_problems)
        stated = IntervalProblem(problem.rows, problem.kernel, *ends, none, problem.number)
        super().__init__(stated, deadline)
