"""Distributed Fourier transforms of real fields: FFTW on each rank, one exchange between them."""
