"""Which combination of a grid is tried next: all in order, by chance, or the most promising (optuna's TPE)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paranmt_hf.training.tuning.grid import Grid
from paranmt_hf.util.optional import require
from paranmt_hf.util.settings import check, seed_setting, setting

Sampler = Literal["tpe", "random", "grid"]


@dataclass(frozen=True)
class TuneConfig:
    """How settings are searched (arXiv:1511.08198, section 4.2)."""

    sampler: Sampler = setting(
        "tpe",
        "which combination comes next: tpe (what optuna finds promising; needs the extra `tune`), random, or grid (in "
        "order)",
    )
    trials: int = setting(20, "combinations that are tried, without those that do not fit together", at_least=1)
    tune_pairs: int = setting(100_000, "pairs of each trial (section 4.2)", at_least=2)
    search_seed: int = seed_setting(1, "decides which combinations are tried")
    final_epochs: int = setting(10, "passes over all pairs with the best settings (section 4.2)", at_least=1)

    def __post_init__(self) -> None:
        check(self)


class Order:
    """Chooses combinations that have not been tried, the same ones after every interruption.

    Args:
        grid: The grid.
        config: The way of choosing, and its seed.

    Raises:
        InputError: optuna is needed and not installed.
    """

    def __init__(self, grid: Grid, config: TuneConfig) -> None:
        self.grid, self.config = grid, config
        generator = np.random.default_rng(config.search_seed)
        count = len(grid)
        self._order = np.arange(count) if config.sampler == "grid" else generator.permutation(count)
        self._optuna: Any = require("optuna", "tune") if config.sampler == "tpe" else None
        if self._optuna is not None:
            self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        self._passed = 0

    def next(self, known: Sequence[tuple[Mapping[str, Any], float | None]], closed: set[int]) -> int | None:
        """Choose a combination.

        Args:
            known: Combinations that were tried, and their scores; None for those that failed.
            closed: Indices of combinations that are not to be chosen: tried, or of settings that do not fit together.

        Returns:
            Its index; None where all are closed.
        """
        while self._passed < len(self._order) and int(self._order[self._passed]) in closed:
            self._passed += 1
        if self._passed == len(self._order):
            return None
        proposed = self._propose(known, len(closed)) if self._optuna is not None else None
        return int(self._order[self._passed]) if proposed is None or proposed in closed else proposed

    def _propose(self, known: Sequence[tuple[Mapping[str, Any], float | None]], turn: int) -> int:
        """Let TPE choose; its generator starts anew in each turn, so that an interruption changes nothing."""
        optuna = self._optuna
        choices = {
            name: optuna.distributions.CategoricalDistribution(range(len(values)))
            for name, values in self.grid.values.items()
        }
        sampler = optuna.samplers.TPESampler(seed=(self.config.search_seed + 7919 * turn) % 2**32)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for combination, score in known:
            positions = {name: values.index(combination[name]) for name, values in self.grid.values.items()}
            state = optuna.trial.TrialState.FAIL if score is None else optuna.trial.TrialState.COMPLETE
            study.add_trial(
                optuna.trial.create_trial(state=state, params=positions, distributions=choices, value=score)
            )
        chosen = study.ask(choices).params
        return self.grid.index({name: values[chosen[name]] for name, values in self.grid.values.items()})
