"""Run the program with ``python -m sealgate``."""

from sealgate.cli import main

if __name__ == "__main__":
    main()
