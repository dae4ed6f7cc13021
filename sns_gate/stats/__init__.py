"""Estimates and intervals from numbers alone; it knows nothing of files, workers or clocks."""

from sns_gate.stats.bootstrap import bootstrap_ci, ratio_ci
from sns_gate.stats.clustered import (
    MIN_CLUSTERS,
    Estimate,
    Spread,
    block_effect,
    clustered_estimate,
    half_width,
    spread,
)
from sns_gate.stats.descriptive import cv_percent, mean_interval, percentile
from sns_gate.stats.planning import (
    RULING_RATIO,
    confirmation_level,
    detectable_slowdown_pct,
    in_vain,
    predicted_half_width,
    worthwhile_pairs,
)

__all__ = [
    "MIN_CLUSTERS",
    "RULING_RATIO",
    "Estimate",
    "Spread",
    "block_effect",
    "bootstrap_ci",
    "clustered_estimate",
    "confirmation_level",
    "cv_percent",
    "detectable_slowdown_pct",
    "half_width",
    "in_vain",
    "mean_interval",
    "percentile",
    "predicted_half_width",
    "ratio_ci",
    "spread",
    "worthwhile_pairs",
]
