"""Runs commands one after another in the current folder, and prints the first that fails: `commands.py quick|all`."""

import sys
from pathlib import Path

from paranmt_hf.cli import main, show_any_text

WORDS = (
    "man woman dog child plays runs sings eats red small old happy in park house street with ball guitar apple".split()
)


def write_inputs():
    """Pairs, a bitext and judged pairs of a few words."""
    pairs = [
        (
            f"a {WORDS[i % 4]} {WORDS[4 + i % 3]} {WORDS[12 + i % 5]} {WORDS[17 + i % 3]} {i}",
            f"the {WORDS[i % 4]} {i} {WORDS[4 + i % 7]} .",
        )
        for i in range(60)
    ]
    Path("pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs), encoding="utf8")
    Path("text.txt").write_text("".join(f"{one} žluťoučký kůň\n" for one, _ in pairs), encoding="utf8")
    Path("judged.tsv").write_text(
        "".join(f"{i % 6}\t{one}\t{two}\n" for i, (one, two) in enumerate(pairs)), encoding="utf8"
    )
    Path("cs").write_text("Muž hraje na kytaru.\nDva psi běží po trávě.\n", encoding="utf8")
    Path("en").write_text("A man plays a guitar.\nTwo dogs run over the grass.\n", encoding="utf8")


QUICK = [
    "--help",
    "import pairs.tsv --out corpus --made-by machine --license cc-by-4.0 --engine workers=1",
    "import pairs.tsv --out corpus --made-by machine --license cc-by-4.0 --engine workers=1",
]
ALL = [
    *QUICK,
    "select corpus --max-length 9 --drop-identical --out selected",
    "search index text.txt --out index",
    "search query index kůň --top 2",
    "score corpus --add number_mismatch",
    "stats corpus selected",
    "lexicon build corpus --out lexicon --min-count 1",
    "search mine text.txt --out mined --license cc-by-4.0",
    "train --data corpus --model word-trigram --dimension 8 --batch-size 10 --mega-batch 2 --epochs 1 --out encoder",
    "train-sent2vec text.txt --dimension 8 --epochs 1 --min-count 1 --out sent2vec",
    "evaluate sts encoder --data judged.tsv --json results.json",
    "build --source cs --reference en --translator captions-cs-en --license cc-by-nc-sa-4.0 --engine workers=1 "
    "--out built",
    "import pairs.tsv --out twice --made-by people --license mit --engine workers=2,shard_rows=30",
    "publish encoder you/encoder --license cc-by-4.0 --dry-run",
]


def run():
    """Run the commands in turn."""
    import paranmt_hf

    show_any_text()
    write_inputs()
    vectors = paranmt_hf.StaticEncoder.from_pretrained().encode(["A man is playing a guitar.", "It will rain."])
    assert vectors.shape == (2, 256)
    for command in QUICK if sys.argv[1] == "quick" else ALL:
        before = sys.argv
        sys.argv = ["paranmt", *command.split()]
        if code := main(sys.argv[1:]):
            sys.exit(f"exit {code}: {command}")
        sys.argv = before


if __name__ == "__main__":
    run()
