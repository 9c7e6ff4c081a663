"""A Space: encode sentences, compare two, search in a list, and paraphrase where there is a paraphraser.

`python app.py --encoder FOLDER_OR_ID --paraphraser FOLDER_OR_ID`; on a Space the variables PARANMT_ENCODER and
PARANMT_PARAPHRASER name them. Without them it uses the encoder of the package, and does not paraphrase.
"""

import argparse
import os
from collections.abc import Callable
from functools import wraps

# Read when gradio is imported.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

import gradio as gr

import paranmt_hf

MOST_SENTENCES, MOST_ENCODED, MOST_PARAPHRASED, MOST_CHARACTERS = 10_000, 500, 20, 1_000_000
SHOWN_DIMENSIONS = 6
FIRST, SECOND, QUERY = "A man is playing a guitar.", "Someone plays a guitar.", "someone makes music"
EXAMPLES = """A man is playing a guitar.
Someone plays an instrument.
A woman slices an onion.
Two dogs run on the beach.
It will rain tomorrow.
The train leaves at nine o'clock."""
WITHOUT = (
    "No paraphraser is given. Set PARANMT_PARAPHRASER to the folder or the Hub id of a model of `paranmt paraphrase "
    "train`, among the variables of the Space, or start the program with `--paraphraser`."
)


def explained(answer: Callable) -> Callable:
    """Show errors of input as one sentence on the page."""

    @wraps(answer)
    def call(*values: str | int) -> object:
        try:
            return answer(*values)
        except paranmt_hf.InputError as error:
            raise gr.Error(str(error), print_exception=False) from None

    return call


def lines(text: str, most: int = MOST_SENTENCES) -> list[str]:
    """The sentences of a text, one a line."""
    if len(text) > MOST_CHARACTERS:
        raise paranmt_hf.InputError(f"expected at most {MOST_CHARACTERS:,} characters, got {len(text):,}")
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if not found:
        raise paranmt_hf.InputError("write a sentence first, or several, one a line")
    if len(found) > most:
        raise paranmt_hf.InputError(f"expected at most {most:,} sentences, got {len(found):,}")
    return found


def one(text: str) -> str:
    """A single sentence."""
    return " ".join(lines(text))


def build_app(encoder_name: str, paraphraser_name: str | None) -> gr.Blocks:
    """Load the models and lay out the page."""
    encoder = paranmt_hf.load(encoder_name)
    paraphraser = paranmt_hf.Paraphraser.from_pretrained(paraphraser_name) if paraphraser_name else None

    @explained
    def encode(text: str) -> tuple[list, list]:
        sentences = lines(text, MOST_ENCODED)
        vectors = encoder.encode(sentences, show_progress_bar=False).tolist()
        rows = [
            [sentence, *(round(value, 4) for value in vector[:SHOWN_DIMENSIONS])]
            for sentence, vector in zip(sentences, vectors, strict=True)
        ]
        return rows, vectors

    @explained
    def compare(first: str, second: str) -> float:
        vectors = encoder.encode([one(first), one(second)], show_progress_bar=False)
        return round(float(encoder.similarity(vectors, vectors)[0, 1]), 4)

    @explained
    def search(query: str, text: str, top: int) -> list[list]:
        sentences = lines(text)
        vectors = encoder.encode([one(query), *sentences], show_progress_bar=False)
        scores = encoder.similarity(vectors[:1], vectors[1:])[0].tolist()
        best = sorted(range(len(sentences)), key=lambda place: -scores[place])[: int(top)]
        return [[round(scores[place], 4), sentences[place]] for place in best]

    @explained
    def paraphrase(text: str, count: int) -> list[list]:
        sentences = lines(text, MOST_PARAPHRASED)
        found = paraphraser(sentences, n=int(count))
        return [
            [sentence, choice.text, None if choice.score is None else round(choice.score, 4)]
            for sentence, choices in zip(sentences, found, strict=True)
            for choice in choices
        ]

    with gr.Blocks(analytics_enabled=False, title="Sentences and paraphrases") as app:
        size = f"{encoder.get_embedding_dimension()} dimensions"
        gr.Markdown(f"# Sentences and paraphrases\nEncoder: `{encoder.source.name}`, {size}")
        with gr.Tab("Compare"):
            first = gr.Textbox(FIRST, label="First sentence")
            second = gr.Textbox(SECOND, label="Second sentence")
            button = gr.Button("Compare", variant="primary")
            score = gr.Number(compare(FIRST, SECOND), label="Similarity", precision=4)
            button.click(compare, [first, second], score, api_name="compare")
        with gr.Tab("Search"):
            query = gr.Textbox(QUERY, label="Query")
            text = gr.Textbox(EXAMPLES, label="Sentences, one a line", lines=8, max_lines=20)
            top = gr.Slider(1, 50, 3, step=1, label="How many")
            button = gr.Button("Search", variant="primary")
            headers = ["similarity", "sentence"]
            hits = gr.Dataframe(search(QUERY, EXAMPLES, 3), headers=headers, interactive=False, wrap=True)
            button.click(search, [query, text, top], hits, api_name="search")
        with gr.Tab("Encode"):
            text = gr.Textbox(EXAMPLES, label="Sentences, one a line", lines=6, max_lines=20)
            button = gr.Button("Encode", variant="primary")
            headers = ["sentence", *(f"{place + 1}" for place in range(SHOWN_DIMENSIONS))]
            shown = gr.Dataframe(headers=headers, interactive=False, label="The first dimensions of each vector")
            whole = gr.JSON(label="The whole vectors")
            button.click(encode, text, [shown, whole], api_name="encode")
        with gr.Tab("Paraphrase"):
            if paraphraser is None:
                gr.Markdown(WITHOUT)
            else:
                text = gr.Textbox(FIRST, label="Sentences, one a line", lines=3)
                count = gr.Slider(1, 5, 3, step=1, label="Paraphrases of each")
                button = gr.Button("Paraphrase", variant="primary")
                found = gr.Dataframe(headers=["sentence", "paraphrase", "score"], interactive=False, wrap=True)
                button.click(paraphrase, [text, count], found, api_name="paraphrase")
    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--encoder", default=os.environ.get("PARANMT_ENCODER") or "small")
    parser.add_argument("--paraphraser", default=os.environ.get("PARANMT_PARAPHRASER") or None)
    parser.add_argument("--port", type=int, default=None, help="7860, or the next one that is free, if left out")
    chosen = parser.parse_args()
    try:
        app = build_app(chosen.encoder, chosen.paraphraser)
    except paranmt_hf.InputError as error:
        raise SystemExit(f"app.py: {error}") from None
    app.launch(server_port=chosen.port)
