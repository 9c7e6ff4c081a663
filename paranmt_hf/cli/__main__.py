"""Entry point of `python -m paranmt_hf.cli`."""

from paranmt_hf.cli import console_main

if __name__ == "__main__":
    console_main()
