import numpy as np
import pytest

from hpcsim.ensemble.parameters import Parameter, draw, grid_members, parse, uniform, written


def test_range_includes_both_ends_exactly():
    values = draw({"x": parse({"range": [0.1, 0.7]})}, 7, 0, 0, 7)["x"]
    assert values[0] == 0.1
    assert values[-1] == 0.7
    np.testing.assert_allclose(np.diff(values), 0.1, rtol=1e-14)


def test_grid_is_a_product_with_the_first_parameter_slowest():
    parameters = {
        "x": parse({"grid": [0, 1, 2]}),
        "k": parse(5.0),
        "y": parse({"grid": [10, 30, 3]}),
    }
    assert grid_members(parameters) == 6
    values = draw(parameters, 6, 0, 0, 6)
    assert values["x"].tolist() == [0, 0, 0, 1, 1, 1]
    assert values["y"].tolist() == [10, 20, 30, 10, 20, 30]
    assert values["k"].tolist() == [5.0] * 6


def test_random_values_depend_on_seed_member_and_name_only():
    whole = uniform(3, "x", 0, 1000)
    for start, count in ((0, 1), (17, 1), (100, 333), (999, 1), (5, 0)):
        np.testing.assert_array_equal(uniform(3, "x", start, count), whole[start : start + count])
    assert not np.array_equal(whole, uniform(4, "x", 0, 1000))
    assert not np.array_equal(whole, uniform(3, "y", 0, 1000))


def test_random_values_are_uniform():
    """Mean and quantiles of 10⁵ draws within 5 standard errors; no correlation between names."""
    x, y = uniform(0, "x", 0, 100_000), uniform(0, "y", 0, 100_000)
    assert abs(x.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 1e5)
    counts = np.histogram(x, bins=10, range=(0, 1))[0]
    assert np.abs(counts - 1e4).max() < 5 * np.sqrt(1e5 * 0.1 * 0.9)
    assert abs(np.corrcoef(x, y)[0, 1]) < 5 / np.sqrt(1e5)
    assert x.min() >= 0
    assert x.max() < 1


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_blocks_of_any_partition_join_to_the_whole(ranks):
    parameters = {
        "a": parse({"random": [1, 2]}),
        "b": parse({"range": [-1, 3]}),
        "c": parse({"list": list(range(10))}),
    }
    whole = draw(parameters, 10, 42, 0, 10)
    for rank in range(ranks):
        start, stop = 10 * rank // ranks, 10 * (rank + 1) // ranks
        part = draw(parameters, 10, 42, start, stop - start)
        for name, values in part.items():
            np.testing.assert_array_equal(values, whole[name][start:stop])


@pytest.mark.parametrize(
    "value",
    [1.5, {"range": [0.0, 1.0]}, {"grid": [0.0, 1.0, 3]}, {"list": [1.0]}, {"random": [0.0, 2.0]}],
)
def test_what_is_written_is_read_back(value):
    assert written(parse(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        "fast",
        True,
        float("nan"),
        {},
        {"rnage": [0, 1]},
        {"range": [0]},
        {"range": [0, 1, 2]},
        {"range": 3},
        {"range": [0, float("inf")]},
        {"grid": [0, 1, 2.5]},
        {"grid": [0, 1, 0]},
        {"list": []},
        {"list": ["a"]},
        {"range": [0, 1], "random": [0, 1]},
    ],
)
def test_anything_else_is_refused_with_the_forms_that_are_allowed(value):
    with pytest.raises(ValueError, match=r"\{range = \[a, b\]\}"):
        parse(value)


def test_a_parameter_is_hashable_data():
    assert Parameter("number", (1.0,)) == parse(1)
