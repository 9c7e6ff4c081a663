"""`paranmt train`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from paranmt_hf.cli.options import DATA_HELP, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, is_first, keep_options

SUMMARY = "train a sentence encoder on paraphrase pairs"
# Options that most runs give; the others are listed below them.
USUAL = {
    *("model", "dimension", "vectors", "init_from", "teacher", "epochs", "batch_size", "mega_batch"),
    *("learning_rate", "seed", "device", "subset", "min_score", "max_length", "max_pairs"),
}


def configure(parser: CommandParser) -> None:
    """Options of `paranmt train`."""
    from paranmt_hf.corpus.pairs import PairSelection
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.training.config import TrainConfig
    from paranmt_hf.training.recipes import check_needs, read_recipe, recipe_names, train_recipe

    parser.add_argument("--data", nargs="+", help=DATA_HELP)
    parser.add_argument(
        "--text",
        nargs="+",
        help="sentences without paraphrases, for a --teacher alone: text files with one on a line, Parquet, releases",
    )
    parser.add_argument(
        "--recipe",
        choices=recipe_names(),
        help="the settings of an encoder of model_cards/, trained in two steps on your data; options beside it change "
        "the first step",
    )
    parser.expansions["recipe"] = lambda name: read_recipe(name).first
    parser.add_argument("--out", type=Path, required=True, help="folder of the encoder")
    parser.add_argument(
        "--development",
        help="keep the weights that are best on these scored pairs: `sample` (40 that the package carries), a TSV or "
        "Parquet file with sentence1, sentence2 and score, or a folder with STSBenchmark (its STS 2017 pairs)",
    )
    parser.add_argument(
        "--exclude",
        type=Path,
        help="folder with STS sets: leave out pairs with their sentences, and text that shares eight words with one",
    )
    kinds: dict[type, str] = {EncoderConfig: "encoder", TrainConfig: "training", PairSelection: "pairs"}
    for kind, title in kinds.items():
        add_options(parser.add_argument_group(title), kind, only=USUAL)
    advanced = parser.add_argument_group("advanced")
    advanced.add_argument("--teacher-cache", type=Path, help="folder that keeps the teacher's vectors for other runs")
    for kind in kinds:
        add_options(advanced, kind, leave_out=USUAL)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.training.record import Trained
        from paranmt_hf.training.train import train

        make: Callable[..., Trained] = train
        if arguments.recipe:
            recipe = read_recipe(arguments.recipe)
            check_needs(recipe, vars(arguments))
            make = partial(train_recipe, recipe)
        trained = make(
            arguments.data,
            arguments.out,
            encoder=from_options(EncoderConfig, arguments),
            config=from_options(TrainConfig, arguments),
            selection=from_options(PairSelection, arguments),
            development=arguments.development,
            exclude=arguments.exclude,
            text=arguments.text,
            teacher_cache=arguments.teacher_cache,
        )
        keep_options(arguments, trained.folder, fresh=trained.fresh)
        if not is_first():
            return
        record, state = trained.record, "" if trained.fresh else " (was trained already)"
        print(f"{arguments.out}: {record.dimension} dimensions, {record.parameters:,} parameters{state}")
        history = record.history
        # What stands by twos in place of pairs is sentences. The last step of a recipe may be of pairs alone.
        of_text = "text" in record.settings.data
        seen = f"{2 * history.pairs:,} sentences" if of_text else f"{history.pairs:,} pairs"
        print(f"  {seen} in {history.seconds:,.0f} s, last loss {history.losses[-1][1]:.3f}")
        if record.development is not None:
            print(f"  Pearson {100 * record.development:.1f} on the development set, {record.settings.development}")
            if len(history.scores) > 1:
                kept = f"step {history.best_step:,} of {history.scores[-1][0]:,}"
                print(f"  the best of {len(history.scores)} scores; the weights are those of {kept}")
        print(f"load it: paranmt_hf.load({str(arguments.out)!r})")

    parser.finish(run, "paranmt train --data paranmt50m --model word-trigram --out models/word-trigram")
