"""The machine: clock and chance, timers, tasks, descriptors."""
