"""The slab transform against numpy's and PFFT, on any number of ranks."""

import numpy as np
import pytest

from hpcsim.parallel.ranks import Ranks
from hpcsim.transform.fftw import Effort
from hpcsim.transform.reference import ReferenceTransform
from hpcsim.transform.slab import SlabTransform, kept_modes

#: Even, odd and prime sizes, sizes that no rank count divides, fewer planes than ranks.
GRIDS = [(8, 6, 10), (7, 5, 9), (13, 4, 4), (2, 3, 4), (16, 12), (9, 7), (11, 13), (3, 2)]
#: More columns of modes than are transformed at once; planes in chunks with a rest.
GRIDS += [(5, 40, 60), (20, 6000)]
#: Rounding of sums of up to 120 000 numbers of size 1 (their own size is 350), with room.
ROUNDING = 1e-11


def field(shape, components, seed=1):
    return np.random.default_rng(seed).normal(size=(components, *shape))


def check_against_numpy(shape, truncated, components, ranks):
    transform = SlabTransform(shape, ranks, (components,), truncated, Effort.ESTIMATE)
    whole = field(transform.shape, components)
    mine = slice(transform.start, transform.start + transform.count)
    u = whole[:, mine].copy()
    u_hat = transform.spectral(components)
    transform.forward(u, u_hat)
    spectrum = np.fft.rfftn(whole, axes=(1, 2, 3))
    x, y, z = (modes % n for modes, n in zip(transform.modes, transform.shape, strict=True))
    expected = spectrum[:, x][:, :, y][:, :, :, z].transpose(1, 0, 2, 3)
    np.testing.assert_allclose(u_hat, expected, rtol=0, atol=ROUNDING)
    before = u_hat.copy()
    transform.backward(u_hat, u)
    np.testing.assert_array_equal(u_hat, before)
    kept = np.zeros(spectrum.shape[1:])
    sides = [kept_modes(n, truncated, real=axis == 2) % n for axis, n in enumerate(transform.shape)]
    kept[np.ix_(*sides)] = 1.0
    expected = np.fft.irfftn(spectrum * kept, s=transform.shape, axes=(1, 2, 3))[:, mine]
    np.testing.assert_allclose(u / transform.points, expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("shape", GRIDS)
@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("components", [1, 3])
def test_one_rank(shape, truncated, components):
    check_against_numpy(shape, truncated, components, Ranks.alone())


@pytest.mark.mpi
@pytest.mark.parametrize("shape", GRIDS)
@pytest.mark.parametrize("truncated", [False, True])
def test_several_ranks(shape, truncated, ranks):
    check_against_numpy(shape, truncated, 3, ranks)


@pytest.mark.mpi
@pytest.mark.parametrize("shape", [(8, 6, 10), (16, 12), (9, 5, 7)])
def test_agrees_with_pfft(shape, ranks):
    """Each rank compares the modes that it has in both; together they have all."""
    fast = SlabTransform(shape, ranks, (2,), effort=Effort.ESTIMATE)
    slow = ReferenceTransform(shape, ranks)
    whole = field(fast.shape, 2)
    spectra = []
    for transform in (fast, slow):
        u = whole[:, transform.start : transform.start + transform.count].copy()
        u_hat = transform.spectral(2)
        transform.forward(u, u_hat)
        table = np.zeros((*fast.shape, 2), np.complex128)
        x, y, z = (m % n for m, n in zip(transform.modes, transform.shape, strict=True))
        table[np.ix_(x, y, z)] = u_hat.transpose(0, 2, 3, 1)
        spectra.append(ranks.total(table.view(np.float64)))
        back = np.empty_like(u)
        transform.backward(u_hat, back)
        np.testing.assert_allclose(back / transform.points, u, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(spectra[0], spectra[1], rtol=0, atol=ROUNDING)
    assert np.abs(spectra[0]).max() > 1


def test_a_halo_may_be_cut_off():
    transform = SlabTransform((6, 5, 4), Ranks.alone(), (2,), effort=Effort.ESTIMATE)
    padded = transform.physical(2, halo=2)
    padded[:] = np.nan
    padded[:, 2:-2] = field(transform.shape, 2)
    u_hat, again = transform.spectral(2), transform.spectral(2)
    transform.forward(padded[:, 2:-2], u_hat)
    transform.forward(field(transform.shape, 2), again)
    np.testing.assert_array_equal(u_hat, again)


def test_numbers_of_components_share_one_transform():
    transform = SlabTransform((8, 6, 4), Ranks.alone(), (1, 3, 5), True, Effort.ESTIMATE)
    whole = field(transform.shape, 5)
    spectra = {}
    for components in (1, 3, 5):
        spectra[components] = transform.spectral(components)
        transform.forward(whole[:components].copy(), spectra[components])
    np.testing.assert_array_equal(spectra[5][:, :3], spectra[3])
    np.testing.assert_array_equal(spectra[3][:, :1], spectra[1])
