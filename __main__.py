"""``python -m meshferry …``."""

from .cli.start import run

if __name__ == "__main__":
    run()
