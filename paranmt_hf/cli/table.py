"""The table of commands: each is a public function of its feature."""

from __future__ import annotations

from collections.abc import Iterator

from paranmt_hf.cli.command import Command

# What stands above commands that have commands below them.
FAMILIES = {
    "explore": "look at a corpus, on a local page or as one HTML file",
    "annotate": "let people rate a sample of a corpus",
    "paraphrase": "train models that paraphrase, use and evaluate them (none is carried)",
    "encoder": "average, rotate, convert or export an encoder, take word vectors, see negatives",
    "evaluate": "similarity, transfer tasks, tasks of mteb, triples of sentences, overfitting",
    "lexicon": "word paraphrases found in a corpus",
    "search": "index a corpus, and find its sentences nearest to queries",
}

# Under each heading three lines for a command: its name and function, its summary, and an example.
_TABLE = {
    "corpus": """
build = corpus.build:build
  make a corpus from a bitext, or from text alone
  --source train.cs --reference train.en --translator captions-cs-en --out corpus --license cc-by-nc-sa-4.0
import = corpus.import_pairs:import_pairs
  score pairs that are translated already, and release them
  pairs.tsv --columns reference=1,translation=2 --out corpus --license cc-by-4.0
score = corpus.score:rescore
  score a corpus again, or give it more columns
  paranmt50m --scorer sentence-transformers/all-MiniLM-L6-v2
explore page = apps.explore.explore:explore
  show a corpus on a local page
  paranmt50m --index paranmt50m.index
explore report = apps.explore.explore:write_report
  write what `paranmt explore page` shows as one HTML file
  paranmt50m --out paranmt50m.html
annotate sample = apps.annotate.annotate:sample_for_annotation
  sample pairs from ranges of the paraphrase score
  paranmt50m --out judged --per-range 20
annotate serve = apps.annotate.annotate:serve_annotation
  serve the page on which people rate, on this computer
  judged --annotators Ada Grace
annotate table = apps.annotate.annotate:summarise_annotation
  count the labels of each range, and measure agreement
  judged --json table.json --picture table.png
annotate export = apps.annotate.annotate:export_annotation
  write the answers as CSV
  judged --out answers.csv
annotate import = apps.annotate.annotate:import_annotation
  add answers from CSV, such as those of another computer
  judged answers.csv
select = corpus.selection.select:select
  select rows of a corpus by score, length, language and more
  paranmt50m --tenths 9-10 --max-length 30 --sample 5000000 --out paranmt5m
dedup = search.dedup:dedup
  drop repeated texts of a file, by words or by meaning
  sentences.txt --by exact near meaning --keep-dropped dropped.parquet --out distinct.txt
stats = corpus.statistics.describe:describe_corpora
  measure how diverse the sentences of corpora are, side by side
  paranmt50m news.en --idf-text wiki.txt.gz --parser link-grammar --json stats.json
parse = corpus.parsing.parse:parse_pairs
  parse the sentences of pairs, and count their templates
  paranmt50m --parser link-grammar --selection min_score=0.5,max_length=15 --out parsed
""",
    "encoders": """
train = training.train:train
  train a sentence encoder on paraphrase pairs
  --data paranmt50m --model word-trigram --out models/word-trigram
distill = distillation.distill:distill
  distill an encoder from a large one and your own text
  sentence-transformers/all-MiniLM-L6-v2 --text my.txt --out my-encoder
train-sent2vec = sent2vec.train:train_sent2vec
  train a sentence encoder on single sentences
  text.txt --preset wikipedia --ngrams 2 --out models/sent2vec
supervise = supervised.supervise:supervise
  train an encoder for similarity, entailment or sentiment
  senteval --task SICK-R --init-from models/word --out models/sick
tune = tuning.tune:tune
  search for the settings of an encoder
  ppdb-2.0-xl-phrasal.gz --grid word --development phrases.tsv --out tuned
encoder average = training.derived:average_encoders
  average the weights of encoders trained from one start
  models/one models/two --out models/mean
encoder rotate = training.derived:rotate_encoder
  order dimensions, so that cutting some off costs less
  models/word-trigram --out models/word-trigram-even
encoder convert = sent2vec.convert:convert_model
  convert a .bin model of the original Sent2Vec program
  model.bin --out models/sent2vec --license cc-by-4.0
encoder export = encoders.export.export:export_encoder
  export for model2vec, ONNX, transformers.js and others
  models/word --format static --out exports/word
encoder vectors = distillation.vectors:distill_vectors
  distill word vectors from large encoders
  sentence-transformers/all-MiniLM-L6-v2 --data paranmt50m --out vectors.txt.gz
negatives = search.hard_negatives:hard_negatives
  give pairs hard negatives, for losses of sentence-transformers
  paranmt50m --encoder small --out paranmt50m-negatives
encoder negatives = training.negatives:mined_negatives
  show the hard negatives that mega-batches give
  "a man is playing a guitar ." --data paranmt50m --mega-batches 1 20 40
""",
    "evaluation": """
evaluate sts = evaluation.evaluate:evaluate
  evaluate encoders on semantic textual similarity
  models/word small --data FOLDER_WITH_STS --json results.json
evaluate transfer = evaluation.evaluate:transfer
  evaluate encoders on transfer tasks
  models/word small --data FOLDER_OF_SENTEVAL --json transfer.json
evaluate mteb = evaluation.mteb:evaluate_mteb
  evaluate encoders on tasks of the library mteb
  models/word --tasks STS12 SICK-R --data FOLDER_OF_TASKS --out results/word
calibrate = calibration.calibrate:calibrate
  make a cosine a probability that two sentences are paraphrases
  models/word --ratings rated.tsv --positive 4 --out models/word-calibrated
evaluate contrast = evaluation.contrast:evaluate_contrast
  evaluate encoders on triples of sentences
  models/word small --json contrast.json
evaluate overfitting = training.overfitting:evaluate_overfitting
  how far training pairs stand out from their negatives
  models/word --data ppdb-2.0-xl-phrasal.gz --development sample
""",
    "paraphrases": """
paraphrase train = paraphrase.train:train_paraphraser
  train a model that paraphrases
  paranmt50m --out models/paraphraser
paraphrase text = paraphrase.paraphrase_file:paraphrase_file
  generate paraphrases of the sentences of a file
  sentences.txt --model models/paraphraser --out paraphrases.tsv --n 3
paraphrase augment = paraphrase.augment:augment
  add paraphrases to labelled sentences
  reviews.tsv --model models/paraphraser --search n=3 --out more.tsv
paraphrase adversarial = paraphrase.adversarial:find_adversarial
  find paraphrases that change what a classifier says
  reviews.tsv --model models/paraphraser --classifier models/sst --out broken.tsv
paraphrase evaluate = paraphrase.evaluate:evaluate_paraphrases
  evaluate paraphrasers over decodings, or files of paraphrases
  models/paraphraser --data paranmt50m --held-out --decodings greedy beams=8 --json paraphrases.json
paraphrase canonical = paraphrase.evaluate:evaluate_canonical
  evaluate how noisy sentences are brought into standard form
  models/paraphraser --data paranmt50m --held-out --json canonical.json
paraphrase templates = corpus.parsing.template_counts:frequent_templates
  show the most frequent templates of parsed pairs
  parsed --top 20 --json templates.json
""",
    "search": """
search index = search.index:SentenceIndex.build
  build an index of the distinct sentences of a corpus
  sentences.txt --out index
search query = search.index:search
  find the sentences of an index nearest to queries
  index "a man is playing a guitar ." --top 5
search mine = search.mine:mine_pairs
  find pairs of sentences that mean the same
  sentences.txt --out mined --license cc-by-4.0 --made-by people
lexicon build = lexicon.lexicon:Lexicon.build
  build a lexicon from a corpus
  paranmt50m --out lexicon
lexicon nearest = lexicon.word_similarity:nearest_words
  show the paraphrases of words
  lexicon laughed happy --top 10
lexicon evaluate = lexicon.word_similarity:evaluate_lexicon
  evaluate a lexicon on word similarity
  lexicon --simlex SimLex-999.txt --ppdb ppdb-2.0-xl-lexical.gz
serve = apps.serve.serve:serve_encoder
  serve the vectors of an encoder over HTTP, as OpenAI does
  models/word --port 8000
""",
    "more": """
publish = hub.publish:publish
  put a corpus, an encoder or another model on the Hub
  paranmt50m you/paranmt50m --dry-run
quickstart = cli.quickstart:quickstart
  build a small corpus and an encoder offline, from nothing
  --out demo
run = cli.pipeline:run_pipeline
  run the commands of a YAML file that are not done yet
  pipeline.yaml --dry-run
doctor = apps.doctor:diagnose
  show what is installed and what commands would choose
  --online
""",
}


def _commands(text: str) -> Iterator[Command]:
    lines = [line.strip() for line in text.strip().split("\n")]
    for head, summary, words in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name, _, target = head.partition(" = ")
        yield Command(name, f"paranmt_hf.{target}", summary, f"paranmt {name} {words}")


GROUPS = {heading: list(_commands(text)) for heading, text in _TABLE.items()}
COMMANDS = {command.name: command for commands in GROUPS.values() for command in commands}
