import pytest

from paranmt_hf.apps.explore.bins import Bins, bins_of


@pytest.mark.parametrize(
    ("lowest", "highest", "usual", "whole", "expected"),
    [
        (-1.0, 1.0, 0.99, False, Bins(-1.0, 0.1, 20, False)),
        (0.0, 1.0, 0.9, False, Bins(0.0, 0.05, 20, False)),
        (0.31, 0.99, 0.98, False, Bins(0.3, 0.02, 35, False)),
        # A few sentences of 900 tokens do not make all others one bar.
        (1, 900, 60, True, Bins(0.0, 2.0, 31, True)),
        (0, 1, 1, True, Bins(0.0, 1.0, 2, False)),
        (0, 0, 0, True, Bins(0.0, 1.0, 1, False)),
        (None, None, None, False, Bins(0.0, 1.0, 1, False)),
    ],
)
def test_bins(lowest, highest, usual, whole, expected):
    assert bins_of(lowest, highest, usual, whole=whole) == expected


def test_every_value_has_a_bin_and_there_are_few():
    for top in range(1, 400):
        found = bins_of(0, top, top, whole=True)
        assert found.count <= 40
        assert found.low + found.count * found.width > top
