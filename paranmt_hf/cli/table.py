"""The commands: each is a public function of its feature."""

from __future__ import annotations

from paranmt_hf.cli.command import Command

# What stands above commands that have commands below them.
FAMILIES = {
    "encoder": "average, rotate, convert, export or distill an encoder, or see its negatives",
    "lexicon": "word paraphrases found in a corpus",
}

GROUPS: dict[str, list[Command]] = {
    "corpus": [],
    "encoders": [
        Command(
            "train",
            "paranmt_hf.training.train:train",
            "train a sentence encoder on paraphrase pairs",
            "paranmt train --data paranmt50m --model word-trigram --out models/word-trigram",
        ),
        Command(
            "encoder average",
            "paranmt_hf.training.average:average_encoders",
            "average the weights of encoders trained from one start",
            "paranmt encoder average models/one models/two --out models/mean",
        ),
        Command(
            "encoder rotate",
            "paranmt_hf.training.rotate:rotate_encoder",
            "order dimensions, so that cutting some off costs less",
            "paranmt encoder rotate models/word-trigram --out models/word-trigram-even",
        ),
        Command(
            "encoder convert",
            "paranmt_hf.training.convert:convert_model",
            "convert a .bin model of the original Sent2Vec program",
            "paranmt encoder convert model.bin --out models/sent2vec --license cc-by-4.0",
        ),
        Command(
            "encoder export",
            "paranmt_hf.encoders.export.export:export_encoder",
            "export for model2vec, ONNX, transformers.js and others",
            "paranmt encoder export models/word --format static --out exports/word",
        ),
        Command(
            "encoder distill",
            "paranmt_hf.training.vectors:distill_vectors",
            "distill word vectors from large encoders",
            "paranmt encoder distill sentence-transformers/all-MiniLM-L6-v2 --data paranmt50m --out vectors.txt.gz",
        ),
        Command(
            "encoder negatives",
            "paranmt_hf.training.negatives:mined_negatives",
            "show the hard negatives that mega-batches give",
            'paranmt encoder negatives "a man is playing a guitar ." --data paranmt50m --mega-batches 1 20 40',
        ),
    ],
    "paraphrases": [],
    "search": [
        Command(
            "lexicon build",
            "paranmt_hf.lexicon.verbs:build_lexicon",
            "build a lexicon from a corpus",
            "paranmt lexicon build paranmt50m --out lexicon",
        ),
        Command(
            "lexicon nearest",
            "paranmt_hf.lexicon.verbs:nearest_words",
            "show the paraphrases of words",
            "paranmt lexicon nearest lexicon laughed happy --top 10",
        ),
        Command(
            "lexicon evaluate",
            "paranmt_hf.lexicon.verbs:evaluate_lexicon",
            "evaluate a lexicon on word similarity",
            "paranmt lexicon evaluate lexicon --simlex SimLex-999.txt --ppdb ppdb-2.0-xl-lexical.gz",
        ),
    ],
    "more": [
        Command(
            "quickstart",
            "paranmt_hf.apps.quickstart:quickstart",
            "build a small corpus and an encoder offline, from nothing",
            "paranmt quickstart --out demo",
        ),
    ],
}

COMMANDS = {command.name: command for commands in GROUPS.values() for command in commands}

# Commands that are not converted yet, with their module in `cli/`.
OLD = {
    "build": "build",
    "paraphrase-corpus": "paraphrase_corpus",
    "import": "import_pairs",
    "score": "score",
    "select": "select",
    "explore": "explore",
    "report": "report",
    "stats": "stats",
    "annotate": "annotate",
    "search": "search",
    "mine": "mine",
    "tune": "tune",
    "train-sent2vec": "train_sent2vec",
    "parse": "parse",
    "templates": "templates",
    "train-paraphraser": "train_paraphraser",
    "train-controlled": "train_controlled",
    "paraphrase": "paraphrase",
    "augment": "augment",
    "adversarial": "adversarial",
    "evaluate": "evaluate",
    "supervise": "supervise",
    "analyse": "analyse",
    "folds": "folds",
    "sources": "sources",
    "sizes": "sizes",
    "publish": "publish",
    "doctor": "doctor",
}
