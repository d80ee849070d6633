"""hpcsim with a fault built in: `faulty.py WHERE before|after RANK COUNT ACTION -- ARGUMENTS`.

At the COUNT-th call of WHERE (module:function or module:Class.method) rank RANK (or `all`) does
ACTION: `kill` itself, `raise` an error nobody foresaw, or meet a full disk (`full`).
"""

import errno
import importlib
import os
import signal
import sys

from hpcsim import cli
from hpcsim.parallel.launcher import launched_rank


def act(action):
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    raise ArithmeticError("a fault that nobody foresaw")


def build_in(where, moment, count, action):
    module, _, path = where.partition(":")
    owner = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    original = getattr(owner, name)
    calls = 0

    def faulty(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == count and moment == "before":
            act(action)
        result = original(*args, **kwargs)
        if calls == count and moment == "after":
            act(action)
        return result

    setattr(owner, name, faulty)


if __name__ == "__main__":
    where, moment, rank, count, action, _, *arguments = sys.argv[1:]
    if rank == "all" or int(rank) == (launched_rank() or 0):
        build_in(where, moment, int(count), action)
    sys.argv = ["hpcsim", *arguments]
    cli.main()
