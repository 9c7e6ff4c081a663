"""Give labelled sentences paraphrases with the same label.

Run:   python docs/examples/augment_labelled_data.py [LABELLED.csv MODEL]
Needs: this package. LABELLED.csv has the columns `text` and `label`; MODEL is a paraphraser, or any encoder-decoder.
       Without them a tiny paraphraser learns some captions of the sample by heart, and paraphrases these.
"""

import sys
from importlib.resources import files

from datasets import Dataset

import paranmt_hf
from paranmt_hf import PairSelection, ParaphraserConfig, ParaphraserTraining, ReleaseConfig, TextInput

SAMPLE = files("paranmt_hf") / "assets" / "sample"  # Sentences of the package


def tiny_paraphraser() -> str:
    """Train a paraphraser on translations of the sample."""
    bitext = TextInput(source=SAMPLE / "sample.cs", reference=SAMPLE / "sample.en")
    terms = ReleaseConfig(license="cc-by-nc-sa-4.0")
    corpus = paranmt_hf.build(bitext, "examples/paraphrases", translator="captions-cs-en", release=terms)
    size = ParaphraserConfig(pieces=500, embedding=64, hidden=128, dropout=0.0)
    how = ParaphraserTraining("to-translation", epochs=60, held_out=0, batch_tokens=1000, learning_rate=0.005)
    settings = {"config": size, "training": how, "selection": PairSelection(first_pairs=60)}
    return str(paranmt_hf.train_paraphraser(corpus.folder, "examples/tiny", **settings).folder)


if __name__ == "__main__":  # worker processes of `build` import this file
    if len(sys.argv) > 2:
        labelled, model = list(Dataset.from_csv(sys.argv[1])), sys.argv[2]
    else:
        texts, model = (SAMPLE / "sample.en").read_text(encoding="utf8").splitlines()[:20], tiny_paraphraser()
        labelled = [{"text": text, "label": "dog" if "dog" in text else "other"} for text in texts]
    # Below this score a paraphrase has often lost the meaning of the label; read the rows before you train on them.
    paraphraser = paranmt_hf.Paraphraser.from_pretrained(model, n=2, beams=6, min_score=0.8)
    rows = []
    for row, found in zip(labelled, paraphraser([row["text"] for row in labelled]), strict=True):
        rows += [row | {"score": 1.0}, *(row | {"text": each.text, "score": each.score} for each in found)]
    Dataset.from_list(rows).to_csv("examples/augmented.csv")
    print(f"examples/augmented.csv: {len(labelled)} sentences and {len(rows) - len(labelled)} paraphrases")
    print("\n".join(f"  {row['score']:.2f}  {row['label']:<6}  {row['text']}" for row in rows[:15]))
