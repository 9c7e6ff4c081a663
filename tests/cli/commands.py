"""What tests of the command share: small settings, and a command that fails in order."""

from paranmt_hf.cli import main

# A training that takes no time.
SMALL = ["--dimension", "4", "--batch-size", "2", "--mega-batch", "2", "--epochs", "2"]


def fails(capsys, arguments, *messages):
    assert main([str(argument) for argument in arguments]) == 1
    error = capsys.readouterr().err
    last = error.strip().split("\n")[-1]
    assert last.startswith("paranmt: ")
    assert "Traceback" not in error
    for message in messages:
        assert message in last
    return last
