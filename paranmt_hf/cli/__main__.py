"""`python -m paranmt_hf.cli`."""

from paranmt_hf.cli import run

if __name__ == "__main__":
    run()
