"""Cardiovascular disease, medical examinations."""

from __future__ import annotations

import pandas as pd
from benchmarks.datasets._files import Pinned, fetch

from elsewise.datasets import Dataset

FILE = Pinned(
    place="cardio/cardio_train.csv",
    address=(
        "https://raw.githubusercontent.com/caravanuden/cardio/"
        "173b356aa308fc9806d0191f67d9421a9f0bee92/cardio_train.csv"
    ),
    sha256="21a705d23381b0dfd6a6416da701b490744f1fc3b47e9ff3db3968c420ffa10c",
)

SOURCE = (
    "Cardiovascular Disease dataset, S. Ulianova (Kaggle, 2019), also IEEE DataPort, "
    "doi 10.21227/7qm5-dz13; changes: the row number is left out, nothing else."
)

WARNING = (
    "For methods, not for medicine. Where, when and from whom the examinations come is not "
    "documented. Half of the rows have the disease by construction, far more than any population. "
    "Some values cannot be true and are kept as published: systolic pressures from -150 to 16020, "
    "heights from 55 cm, weights from 10 kg. smoke, alco and active are what people said of "
    "themselves. Age is in days; the meaning of gender 1 and 2 is not documented, only guessed."
)


def cardio() -> Dataset:
    """Return Cardio: 70000 examinations, eleven attributes, outcome ``cardio`` (disease = 1).

    ``weight`` is float64, the rest int64; rows are in their published order. Every call returns a
    new frame.

    Returns
    -------
    Dataset
        ``frame`` (70000, 11), ``outcome`` (70000,); read ``warning`` before drawing conclusions.

    References
    ----------
    Cardiovascular Disease dataset, IEEE DataPort, doi 10.21227/7qm5-dz13, 2020.

    Examples
    --------
    >>> cardio()  # doctest: +SKIP
    <Dataset Cardio: 70000 rows x 11 columns, outcome cardio>
    """
    frame = pd.read_csv(fetch(FILE), sep=";").drop(columns="id")
    return Dataset(
        name="Cardio",
        outcome=frame.pop("cardio"),
        frame=frame,
        source=SOURCE,
        licence="unknown: not to be passed on",
        warning=WARNING,
    )
