"""`transformers serve` with a small model of random weights: a server that is nobody's stand-in."""

import os
import socket
import subprocess
import sys
import time

import pytest

from paranmt_hf import InputError, LanguageModelConfig
from paranmt_hf.corpus.language_models.server import Server

SECONDS = 120
TEMPLATE = "{% for message in messages %}<s>{{ message.content }}</s>{% endfor %}"


def save_model(folder):
    """A Llama of two layers whose pieces are bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

    pieces = ["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={piece: index for index, piece in enumerate(pieces)}, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    set_seed(1)
    size = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    config = LlamaConfig(vocab_size=len(pieces), max_position_embeddings=256, **size, **ends)
    LlamaForCausalLM(config).save_pretrained(folder)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    from transformers.utils import import_utils

    if not getattr(import_utils, "is_serve_available", lambda: False)():
        pytest.skip("transformers serve is not installed: pip install 'transformers[serving]'")
    folder = tmp_path_factory.mktemp("served") / "model"
    save_model(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    code = "from transformers.cli.transformers import main; main()"
    log = folder.with_name("log")
    with log.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", str(folder), *options],
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            stdout=said,
            stderr=said,
        )
        try:
            deadline = time.monotonic() + SECONDS
            while True:
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.skip(f"transformers serve does not start here: {log.read_text()[-300:]}")
                try:
                    Server(LanguageModelConfig("m", base_url=f"http://127.0.0.1:{port}")).check()
                    break
                except InputError:
                    time.sleep(0.2)
            yield str(folder), f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_it_answers(served, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    name, address = served
    server = Server(LanguageModelConfig(name, base_url=address, max_answer_tokens=8))
    first, second = server.ask("Say this.\n\nA man."), server.ask("Say this.\n\nA man.")
    assert first == second
    assert first.finish in ("length", "stop")
    assert first.score is None or first.score <= 0
