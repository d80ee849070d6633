import pytest

from hpcsim.time.schedule import Misfit, fit_step, schedule


@pytest.mark.parametrize(
    ("end", "every", "wanted", "dt"),
    [
        (2.0, 0.005, 0.0005, 0.0005),  # fits as it is
        (2.0, 0.005, 0.0006, 0.005 / 9),  # reduced to divide the frames
        (1.0, 0.03, 0.02, 0.01),  # frames do not divide the end: their common divisor does
        (0.3, 0.1, 0.1, 0.1),  # decimal numbers, not their binary neighbours
        (1.0, 1.0, 5.0, 1.0),  # wanted step larger than the run
    ],
)
def test_step_is_the_largest_that_divides_both(end, every, wanted, dt):
    found = fit_step(end, every, wanted)
    assert found == pytest.approx(dt, rel=1e-15)
    plan = schedule(end, every, found, end)
    assert plan.steps * found == pytest.approx(end, rel=1e-12)
    assert plan.frame_steps * found == pytest.approx(every, rel=1e-12)


def test_a_step_that_fits_is_not_changed_by_fitting_it_again():
    for every in (0.005, 0.3, 1 / 3):
        once = fit_step(6 * every, every, every / 7.3)
        assert fit_step(6 * every, every, once) == once


@pytest.mark.parametrize(
    ("end", "every", "wanted"),
    [(1.0, 2.0, 0.1), (1.0, 0.333333333, 0.01)],
)
def test_times_that_do_not_go_together_are_refused(end, every, wanted):
    with pytest.raises(Misfit, match=r"output\.every"):
        fit_step(end, every, wanted)


def test_a_later_end_must_be_a_multiple_of_dt():
    assert schedule(4.0, 0.5, 0.25, 1.0).steps == 16
    with pytest.raises(Misfit, match=r"time\.end = 4\.1: must be a multiple of dt = 0\.25"):
        schedule(4.1, 0.5, 0.25, 1.0)


def test_checkpoints_are_whole_steps():
    assert schedule(1.0, 0.1, 0.1, 0.26).checkpoint_steps == 3
    assert schedule(1.0, 0.1, 0.1, 0.001).checkpoint_steps == 1
