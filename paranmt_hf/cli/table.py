"""The table of commands; the function behind a command is imported when the command runs."""

from __future__ import annotations

from paranmt_hf.cli.command import Command

# Families of commands, such as `paranmt search index` and `paranmt search query`: name and summary.
FAMILIES = {
    "explore": "look at a corpus, on a local page or as one HTML file",
    "annotate": "let people rate a sample of a corpus",
    "paraphrase": "train models that paraphrase, use and evaluate them (none is carried)",
    "encoder": "average, convert or export an encoder, take word vectors",
    "evaluate": "similarity, transfer tasks, tasks of mteb, triples of sentences",
    "lexicon": "word paraphrases found in a corpus",
    "search": "index a corpus, and find its sentences nearest to queries",
}

# The commands under each heading of the help. Arguments: name, function, summary, example.
GROUPS = {
    "corpus": [
        Command(
            "build",
            "paranmt_hf.corpus.build:build",
            "make a corpus from a bitext, or from text alone",
            "paranmt build --source train.cs --reference train.en --translator captions-cs-en --out corpus "
            "--license cc-by-nc-sa-4.0",
        ),
        Command(
            "import",
            "paranmt_hf.corpus.import_pairs:import_pairs",
            "score pairs that are translated already, and release them",
            "paranmt import pairs.tsv --columns reference=1,translation=2 --out corpus --license cc-by-4.0",
        ),
        Command(
            "score",
            "paranmt_hf.corpus.score:rescore",
            "score a corpus again, or give it more columns",
            "paranmt score paranmt50m --scorer sentence-transformers/all-MiniLM-L6-v2",
        ),
        Command(
            "explore page",
            "paranmt_hf.apps.explore.explore:explore",
            "show a corpus on a local page",
            "paranmt explore page paranmt50m --index paranmt50m.index",
        ),
        Command(
            "explore report",
            "paranmt_hf.apps.explore.explore:write_report",
            "write what `paranmt explore page` shows as one HTML file",
            "paranmt explore report paranmt50m --out paranmt50m.html",
        ),
        Command(
            "annotate sample",
            "paranmt_hf.apps.annotate.annotate:sample_for_annotation",
            "sample pairs from ranges of the paraphrase score",
            "paranmt annotate sample paranmt50m --out judged --per-range 20",
        ),
        Command(
            "annotate serve",
            "paranmt_hf.apps.annotate.annotate:serve_annotation",
            "serve the page on which people rate, on this computer",
            "paranmt annotate serve judged --annotators Ada Grace",
        ),
        Command(
            "annotate table",
            "paranmt_hf.apps.annotate.annotate:summarise_annotation",
            "count the labels of each range, and measure agreement",
            "paranmt annotate table judged --json table.json",
        ),
        Command(
            "annotate export",
            "paranmt_hf.apps.annotate.annotate:export_annotation",
            "write the answers as CSV",
            "paranmt annotate export judged --out answers.csv",
        ),
        Command(
            "annotate import",
            "paranmt_hf.apps.annotate.annotate:import_annotation",
            "add answers from CSV, such as those of another computer",
            "paranmt annotate import judged answers.csv",
        ),
        Command(
            "select",
            "paranmt_hf.corpus.selection.select:select",
            "select rows of a corpus by score, length, language and more",
            "paranmt select paranmt50m --tenths 9-10 --max-length 30 --sample 5000000 --out paranmt5m",
        ),
        Command(
            "dedup",
            "paranmt_hf.search.dedup:dedup",
            "drop repeated texts of a file, by words or by meaning",
            "paranmt dedup sentences.txt --by exact near meaning --keep-dropped dropped.parquet --out distinct.txt",
        ),
        Command(
            "stats",
            "paranmt_hf.corpus.statistics.describe:describe_corpora",
            "measure how diverse the sentences of corpora are, side by side",
            "paranmt stats paranmt50m news.en --idf-text wiki.txt.gz --parser link-grammar --json stats.json",
        ),
        Command(
            "parse",
            "paranmt_hf.corpus.parsing.parse:parse_pairs",
            "parse the sentences of pairs, and count their templates",
            "paranmt parse paranmt50m --parser link-grammar --selection min_score=0.5,max_length=15 --out parsed",
        ),
    ],
    "encoders": [
        Command(
            "train",
            "paranmt_hf.training.train:train",
            "train a sentence encoder on paraphrase pairs",
            "paranmt train --data paranmt50m --model word-trigram --out models/word-trigram",
        ),
        Command(
            "distill",
            "paranmt_hf.distillation.distill:distill",
            "distill an encoder from a large one and your own text",
            "paranmt distill sentence-transformers/all-MiniLM-L6-v2 --text my.txt --out my-encoder",
        ),
        Command(
            "train-sent2vec",
            "paranmt_hf.sent2vec.train:train_sent2vec",
            "train a sentence encoder on single sentences",
            "paranmt train-sent2vec text.txt --preset wikipedia --ngrams 2 --out models/sent2vec",
        ),
        Command(
            "supervise",
            "paranmt_hf.supervised.supervise:supervise",
            "train an encoder for similarity, entailment or sentiment",
            "paranmt supervise senteval --task SICK-R --init-from models/word --out models/sick",
        ),
        Command(
            "tune",
            "paranmt_hf.tuning.tune:tune",
            "search for the settings of an encoder",
            "paranmt tune ppdb-2.0-xl-phrasal.gz --grid word --development phrases.tsv --out tuned",
        ),
        Command(
            "encoder average",
            "paranmt_hf.training.average:average_encoders",
            "average the weights of encoders trained from one start",
            "paranmt encoder average models/one models/two --out models/mean",
        ),
        Command(
            "encoder convert",
            "paranmt_hf.sent2vec.convert:convert_model",
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
            "encoder vectors",
            "paranmt_hf.distillation.vectors:distill_vectors",
            "distill word vectors from large encoders",
            "paranmt encoder vectors sentence-transformers/all-MiniLM-L6-v2 --data paranmt50m --out vectors.txt.gz",
        ),
        Command(
            "negatives",
            "paranmt_hf.search.hard_negatives:hard_negatives",
            "give pairs hard negatives, for losses of sentence-transformers",
            "paranmt negatives paranmt50m --encoder small --out paranmt50m-negatives",
        ),
    ],
    "evaluation": [
        Command(
            "evaluate sts",
            "paranmt_hf.evaluation.evaluate:evaluate",
            "evaluate encoders on semantic textual similarity",
            "paranmt evaluate sts models/word small --data FOLDER_WITH_STS --json results.json",
        ),
        Command(
            "evaluate transfer",
            "paranmt_hf.evaluation.evaluate:transfer",
            "evaluate encoders on transfer tasks",
            "paranmt evaluate transfer models/word small --data FOLDER_OF_SENTEVAL --json transfer.json",
        ),
        Command(
            "evaluate mteb",
            "paranmt_hf.evaluation.mteb:evaluate_mteb",
            "evaluate encoders on tasks of the library mteb",
            "paranmt evaluate mteb models/word --tasks STS12 SICK-R --data FOLDER_OF_TASKS --out results/word",
        ),
        Command(
            "calibrate",
            "paranmt_hf.calibration.calibrate:calibrate",
            "make a cosine a probability that two sentences are paraphrases",
            "paranmt calibrate models/word --ratings rated.tsv --positive 4 --out models/word-calibrated",
        ),
        Command(
            "evaluate contrast",
            "paranmt_hf.evaluation.contrast:evaluate_contrast",
            "evaluate encoders on triples of sentences",
            "paranmt evaluate contrast models/word small --json contrast.json",
        ),
    ],
    "paraphrases": [
        Command(
            "paraphrase train",
            "paranmt_hf.paraphrase.train:train_paraphraser",
            "train a model that paraphrases",
            "paranmt paraphrase train paranmt50m --out models/paraphraser",
        ),
        Command(
            "paraphrase text",
            "paranmt_hf.paraphrase.paraphrase_file:paraphrase_file",
            "generate paraphrases of the sentences of a file",
            "paranmt paraphrase text sentences.txt --model models/paraphraser --out paraphrases.tsv --n 3",
        ),
        Command(
            "paraphrase augment",
            "paranmt_hf.paraphrase.augment:augment",
            "add paraphrases to labelled sentences",
            "paranmt paraphrase augment reviews.tsv --model models/paraphraser --decoding n=3 --out more.tsv",
        ),
        Command(
            "paraphrase evaluate",
            "paranmt_hf.paraphrase.evaluate:evaluate_paraphrases",
            "evaluate paraphrasers over decodings, or files of paraphrases",
            "paranmt paraphrase evaluate models/paraphraser --data paranmt50m --held-out --compare greedy "
            "beams=8 --json paraphrases.json",
        ),
    ],
    "search": [
        Command(
            "search index",
            "paranmt_hf.search.index:SentenceIndex.build",
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
            "search mine",
            "paranmt_hf.search.mine:mine_pairs",
            "find pairs of sentences that mean the same",
            "paranmt search mine sentences.txt --out mined --license cc-by-4.0 --made-by people",
        ),
        Command(
            "lexicon build",
            "paranmt_hf.lexicon.lexicon:Lexicon.build",
            "build a lexicon from a corpus",
            "paranmt lexicon build paranmt50m --out lexicon",
        ),
        Command(
            "lexicon nearest",
            "paranmt_hf.lexicon.word_similarity:nearest_words",
            "show the paraphrases of words",
            "paranmt lexicon nearest lexicon laughed happy --top 10",
        ),
        Command(
            "lexicon evaluate",
            "paranmt_hf.lexicon.word_similarity:evaluate_lexicon",
            "evaluate a lexicon on word similarity",
            "paranmt lexicon evaluate lexicon --simlex SimLex-999.txt --ppdb ppdb-2.0-xl-lexical.gz",
        ),
        Command(
            "serve",
            "paranmt_hf.apps.serve.serve:serve_encoder",
            "serve the vectors of an encoder over HTTP, as OpenAI does",
            "paranmt serve models/word --port 8000",
        ),
    ],
    "more": [
        Command(
            "publish",
            "paranmt_hf.hub.publish:publish",
            "put a corpus, an encoder or another model on the Hub",
            "paranmt publish paranmt50m you/paranmt50m --dry-run",
        ),
        Command(
            "quickstart",
            "paranmt_hf.cli.quickstart:quickstart",
            "build a small corpus and an encoder offline, from nothing",
            "paranmt quickstart --out demo",
        ),
        Command(
            "run",
            "paranmt_hf.cli.pipeline:run_pipeline",
            "run the commands of a YAML file that are not done yet",
            "paranmt run pipeline.yaml --dry-run",
        ),
        Command(
            "doctor",
            "paranmt_hf.apps.doctor:diagnose",
            "show what is installed and what commands would choose",
            "paranmt doctor --json doctor.json",
        ),
    ],
}
COMMANDS = {command.name: command for commands in GROUPS.values() for command in commands}
