"""Time: tableaux as data, and the schedule of steps, frames and checkpoints."""
