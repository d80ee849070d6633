"""`python -m hpcsim` is `hpcsim`."""

from hpcsim.cli import main

main()
