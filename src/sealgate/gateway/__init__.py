"""The shell around core: sockets, timers and files, and one visible pipeline."""
