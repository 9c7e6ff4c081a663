"""The commands: each is a public function of its feature."""

from __future__ import annotations

from paranmt_hf.cli.command import Command

# What stands above commands that have commands below them.
FAMILIES = {
    "experiment": "tables and figures of the papers",
    "lexicon": "word paraphrases found in a corpus",
    "search": "index a corpus, and find its sentences nearest to queries",
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
    ],
    "paraphrases": [],
    "search": [
        Command(
            "search index",
            "paranmt_hf.search.index:build_index",
            "build an index of the distinct sentences of a corpus",
            "paranmt search index sentences.txt --out index",
        ),
        Command(
            "search query",
            "paranmt_hf.search.index:search",
            "find the sentences of an index nearest to queries",
            'paranmt search query index "a man is playing a guitar ." --top 5',
        ),
        Command(
            "mine",
            "paranmt_hf.search.mine:mine",
            "find pairs of sentences that mean the same",
            "paranmt mine sentences.txt --out mined --license cc-by-4.0 --made-by people",
        ),
        Command(
            "lexicon build",
            "paranmt_hf.lexicon.build:build_lexicon",
            "build a lexicon from a corpus",
            "paranmt lexicon build paranmt50m --out lexicon",
        ),
        Command(
            "lexicon nearest",
            "paranmt_hf.lexicon.build:nearest_words",
            "show the paraphrases of words",
            "paranmt lexicon nearest lexicon laughed happy --top 10",
        ),
        Command(
            "lexicon evaluate",
            "paranmt_hf.lexicon.build:evaluate_lexicon",
            "evaluate a lexicon on word similarity",
            "paranmt lexicon evaluate lexicon --simlex SimLex-999.txt --ppdb ppdb-2.0-xl-lexical.gz",
        ),
    ],
    "more": [
        Command(
            "experiment paranmt-table4",
            "paranmt_hf.experiments.paranmt_table4:paranmt_table4",
            "which source of text gives the best encoders",
            "paranmt experiment paranmt-table4 news captions --development FOLDER_WITH_STS --out sources",
        ),
        Command(
            "experiment paranmt-table5",
            "paranmt_hf.experiments.paranmt_table5:paranmt_table5",
            "which tenth of a corpus, by which score, gives the best",
            "paranmt experiment paranmt-table5 paranmt50m --development FOLDER_WITH_STS --out folds",
        ),
        Command(
            "experiment paranmt-table6",
            "paranmt_hf.experiments.paranmt_table6:paranmt_table6",
            "which size of mega-batches gives the best encoders",
            "paranmt experiment paranmt-table6 paranmt50m --development FOLDER_WITH_STS --out mega-batches",
        ),
        Command(
            "experiment paragram-figure1",
            "paranmt_hf.experiments.paragram_figure1:paragram_figure1",
            "how much encoders learn from how many pairs",
            "paranmt experiment paragram-figure1 paranmt50m --development FOLDER_WITH_STS --out sizes",
        ),
        Command(
            "doctor",
            "paranmt_hf.apps.doctor:diagnose",
            "show what is installed and what commands would choose",
            "paranmt doctor --online",
        ),
    ],
}

COMMANDS = {command.name: command for commands in GROUPS.values() for command in commands}

# Commands that are not converted yet, with their module in `cli/`.
OLD = {
    "quickstart": "quickstart",
    "build": "build",
    "paraphrase-corpus": "paraphrase_corpus",
    "import": "import_pairs",
    "score": "score",
    "select": "select",
    "explore": "explore",
    "report": "report",
    "stats": "stats",
    "annotate": "annotate",
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
    "average": "average",
    "rotate": "rotate",
    "convert": "convert",
    "negatives": "negatives",
    "vectors": "vectors",
    "publish": "publish",
    "export": "export",
}
