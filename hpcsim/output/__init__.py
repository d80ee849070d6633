"""Run folders: sealed HDF5 files, segments of frames, checkpoints, lock, log, summary, reading."""
