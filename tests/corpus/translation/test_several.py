"""Several hypotheses of a sentence: the best, diverse ones, and draws."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, GenerationConfig
from transformers.modeling_outputs import Seq2SeqLMOutput

from paranmt_hf.corpus.translation.beam import EncodedBatch, beam_search, encode, score
from paranmt_hf.corpus.translation.engines import translator_identity
from paranmt_hf.corpus.translation.sampling import sample_token, uniforms
from paranmt_hf.corpus.translation.transformers import TransformersTranslator
from paranmt_hf.corpus.translation.translator import translate_table
from tests.corpus.translation.letters import ReversingTranslator
from tests.corpus.translation.test_ctranslate2 import comparable
from tests.corpus.translation.tiny_models import FAMILIES, LIMIT, SENTENCES, check_scores, config, load, search
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


def by_sentence(result):
    texts: dict[int, list[str]] = {}
    for owner, text in zip(result.owners.tolist(), result.texts, strict=True):
        texts.setdefault(owner, []).append(text)
    return list(texts.values())


class TestBest:
    @pytest.mark.slow
    @pytest.mark.parametrize("family", FAMILIES)
    def test_scores_are_those_of_a_forward_pass_and_descend(self, folders, family):
        translator = load(folders / family, family, beam=6, hypotheses=4)
        hypotheses, scores = check_scores(translator, folders / family, SENTENCES[:6], 4)
        start = translator._checkpoint.start
        for first in range(0, 24, 4):
            assert len({tuple(ids) for ids in hypotheses[first : first + 4]}) == 4
            if len(start) == 1:
                assert scores[first : first + 4] == sorted(scores[first : first + 4], reverse=True)

    @pytest.mark.slow
    def test_they_are_those_of_generate(self, folders):
        translator = load(folders / "marian", beam=5, hypotheses=5)
        pieces, hypotheses, _ = search(translator, SENTENCES[:6])
        point, model = translator._checkpoint, AutoModelForSeq2SeqLM.from_pretrained(folders / "marian")
        model.generation_config = GenerationConfig(
            num_beams=5,
            num_return_sequences=5,
            early_stopping=True,
            max_new_tokens=LIMIT,
            decoder_start_token_id=point.start[0],
            eos_token_id=point.end,
            pad_token_id=point.pad,
        )
        expected = []
        for source in pieces:
            for row in model.generate(input_ids=torch.tensor([source])).tolist():
                ids = row[1:]
                expected.append(ids[: ids.index(point.end) + 1] if point.end in ids else ids)
        assert hypotheses == [[token for token in ids if token != point.pad] for ids in expected]

    @pytest.mark.slow
    def test_the_first_is_the_only_one_of_a_search_for_one(self, folders):
        one, several = load(folders / "marian", beam=6), load(folders / "marian", beam=6, hypotheses=3)
        assert search(several)[1][::3] == search(one)[1]
        best, texts = [own[0] for own in by_sentence(several.translate(SENTENCES))], one.translate(SENTENCES).texts
        # An empty hypothesis gives way to another.
        assert [text for text, alone in zip(best, texts, strict=True) if alone] == [text for text in texts if text]

    @pytest.mark.slow
    @pytest.mark.parametrize("family", ["marian", "nllb"])
    def test_ctranslate2_finds_the_same(self, folders, family, tmp_path_factory, monkeypatch):
        pytest.importorskip("ctranslate2")
        monkeypatch.setenv("PARANMT_CACHE", str(tmp_path_factory.getbasetemp() / "several"))
        first, second = (
            load(folders / family, family, beam=6, hypotheses=3, backend=backend)
            for backend in ("transformers", "ctranslate2")
        )
        assert "ctranslate2" in str(second.identity["backend"])
        point = first._checkpoint
        pieces = [
            source
            for source in first._checkpoint.encode(SENTENCES)
            if comparable(first._model, source, point.start, point.end, 6)
        ]
        assert len(pieces) > len(SENTENCES) / 3
        expected, scores = first.search(pieces)
        hypotheses, values = second.search(pieces)
        assert hypotheses == expected
        assert values == pytest.approx(scores, abs=1e-5)


class TestDiverse:
    @pytest.mark.slow
    def test_scores_are_those_of_the_model_alone(self, folders):
        translator = load(folders / "marian", beam=6, hypotheses=3, beam_groups=3, diversity=2.0)
        check_scores(translator, folders / "marian", SENTENCES[:4], 3)

    def test_scores_do_not_depend_on_how_many_rows_are_scored_at_once(self, folders):
        translator = load(folders / "marian", beam=2)
        point = translator._checkpoint
        limits = {"pad": point.pad, "start": point.start, "ends": [point.end], "longest": LIMIT}
        batch = encode(translator._model, point.encode(SENTENCES[:4]), **limits)
        targets, _ = beam_search(batch, beams=2)
        assert score(batch, targets, most_logits=1) == pytest.approx(score(batch, targets), abs=1e-5)

    @pytest.mark.slow
    def test_they_share_fewer_words_than_the_best(self, folders):
        def shared(**settings):
            _, ids, _ = search(load(folders / "marian", beam=6, hypotheses=3, **settings))
            return sum(a == b for row in range(0, len(ids), 3) for a, b in zip(ids[row], ids[row + 2], strict=False))

        assert shared(beam_groups=3, diversity=3.0) < 0.5 * shared()

    @pytest.mark.slow
    def test_one_of_the_groups_is_the_search_with_its_beams(self, folders):
        alone, groups = load(folders / "marian", beam=2), load(folders / "marian", beam=6, hypotheses=3, beam_groups=3)
        several = search(groups)[1]
        assert all(ids in several[3 * row : 3 * row + 3] for row, ids in enumerate(search(alone)[1]))

    @pytest.mark.slow
    def test_company_changes_nothing(self, folders):
        settings = {"beam": 4, "hypotheses": 2, "beam_groups": 2}
        together = load(folders / "marian", **settings).translate(SENTENCES[:12])
        alone = load(folders / "marian", **settings, batch_tokens=1).translate(SENTENCES[:12])
        assert alone.texts == together.texts

    def test_a_penalty_by_hand(self):
        """With it the second best word of two wins at the first place, and the score is the lowered one."""

        def model(encoder_outputs, attention_mask, decoder_input_ids, use_cache, **cache):
            """The same three log-probabilities at each place; the end is 0."""
            logits = torch.tensor([0.2, 0.5, 0.3]).log().expand(len(decoder_input_ids), 1, 3)
            return Seq2SeqLMOutput(logits=logits)

        def lower(scores, rows, tokens):
            return scores - torch.tensor([0.0, 1.0, 0.0]) * (tokens.shape[1] == 0)

        batch = EncodedBatch(model, None, torch.ones(1, 1), start=[0], ends=[0], longest=1)
        assert beam_search(batch, beams=1) == ([[1]], [pytest.approx(np.log(0.5))])
        assert beam_search(batch, beams=1, change=lower) == ([[2]], [pytest.approx(np.log(0.3))])


class TestDraws:
    @pytest.mark.slow
    def test_a_draw_depends_on_seed_and_content_alone(self, folders):
        settings = {"sample": True, "hypotheses": 3}
        together = load(folders / "marian", **settings).translate(SENTENCES[:12])
        alone = load(folders / "marian", **settings, batch_tokens=1).translate(SENTENCES[11::-1])
        assert by_sentence(alone) == by_sentence(together)[::-1]
        assert load(folders / "marian", **settings, draw_seed=1).translate(SENTENCES[:12]).texts != together.texts

    @pytest.mark.slow
    def test_more_hypotheses_keep_the_former_draws(self, folders):
        few = by_sentence(load(folders / "marian", sample=True, hypotheses=2).translate(SENTENCES))
        many = by_sentence(load(folders / "marian", sample=True, hypotheses=5).translate(SENTENCES))
        assert all(set(own) <= set(more) for own, more in zip(few, many, strict=True))
        assert sum(map(len, many)) > sum(map(len, few))

    @pytest.mark.slow
    @pytest.mark.parametrize("temperature", [0.5, 2.0])
    def test_scores_are_those_of_the_model_alone(self, folders, temperature):
        translator = load(folders / "nllb", "nllb", sample=True, hypotheses=2, temperature=temperature, top_p=0.9)
        check_scores(translator, folders / "nllb", SENTENCES[:4], 2)

    @pytest.mark.slow
    def test_hardly_any_mass_is_the_greedy_search(self, folders):
        greedy, drawn = load(folders / "marian", beam=1), load(folders / "marian", sample=True, top_p=1e-6)
        assert drawn.translate(SENTENCES).texts == greedy.translate(SENTENCES).texts

    def test_words_come_as_often_as_they_are_probable(self):
        logits = torch.tensor([0.1, 0.2, 0.7]).log()
        numbers = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000

        def counts(temperature, top_p):
            drawn = sample_token(logits.expand(10_000, 3), numbers, temperature, top_p)
            return (torch.bincount(drawn, minlength=3) / 10_000).tolist()

        assert counts(1.0, 1.0) == pytest.approx([0.1, 0.2, 0.7], abs=2e-4)
        # Squares of the probabilities, 0.01, 0.04 and 0.49, made to sum to 1.
        assert counts(0.5, 1.0) == pytest.approx([1 / 54, 4 / 54, 49 / 54], abs=2e-4)
        assert counts(1.0, 0.75) == pytest.approx([0, 2 / 9, 7 / 9], abs=2e-4)
        assert counts(1.0, 0.7 - 1e-6) == [0, 0, 1]

    def test_numbers_by_source(self):
        both = uniforms([[5, 6], [7]], 3, 2, 4)
        assert np.array_equal(uniforms([[7]], 3, 5, 4)[0, :2], both[1])
        assert not np.isin(uniforms([[7]], 4, 2, 4), both).any()
        assert ((both >= 0) & (both < 1)).all()


class TestSettings:
    def test_ctranslate2_takes_neither_draws_nor_groups(self, folders):
        pytest.importorskip("ctranslate2")
        for settings in ({"sample": True}, {"beam_groups": 3}):
            with refused():
                load(folders / "marian", backend="ctranslate2", **settings)
            assert isinstance(load(folders / "marian", backend="auto", **settings), TransformersTranslator)

    def test_identity(self, folders):
        """What stands in a manifest of one hypothesis stays, so that work in progress goes on."""

        def identity(**settings):
            return translator_identity(config(folders / "marian", backend="transformers", **settings))

        assert {"hypotheses", "sample", "beam_groups"}.isdisjoint(identity())
        drawn = identity(sample=True, hypotheses=2, draw_seed=7)
        assert (drawn["sample"], drawn["hypotheses"], drawn["seed"], "beam" in drawn) == (True, 2, 7, False)
        assert identity(beam_groups=3, hypotheses=3)["beam_groups"] == 3


class Repeating(ReversingTranslator):
    """Three hypotheses: the sentence, the same with another white space, and itself backwards; or nothing twice."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self._count = 3

    def search(self, sources):
        ids, scores = [], []
        for source in sources:
            own = source[:-1]
            ids += [own, [*own, 32], own[::-1]] if own[0] != ord("x") else [[], [], own]
            scores += [-1.0, -2.0, -3.0]
        return ids, scores


class TestTable:
    def test_ranks_by_hand(self):
        batch = pa.table(
            {
                "id": [4, 5, 7, 8, 9],
                "source": ["ac", "", "aa", "a" * 20, "xy"],
                "reference": list("rstuv"),
                "origin": list("klmno"),
            }
        )
        table, dropped = translate_table(batch, Repeating())
        assert table.to_pydict() == {
            "id": [4, 4, 7, 9],
            "rank": [1, 2, 1, 1],
            "reference": ["r", "r", "t", "v"],
            "translation": ["ac", "ca", "aa", "xy"],
            "source": ["ac", "ac", "aa", "xy"],
            "translation_score": [-1, -3, -1, -3],
            "origin": ["k", "k", "m", "o"],
        }
        assert dropped == {"source over 10 pieces": 1, "empty translation": 1}

    def test_memory_and_workers_change_nothing(self):
        sentences = [chr(97 + number % 20) * (1 + number % 9) + "b" for number in range(60)]
        expected = Repeating(batch_tokens=200).translate(sentences)
        scarce = Repeating(batch_tokens=30, workers=3).translate(sentences)
        assert scarce.texts == expected.texts
        assert np.array_equal(scarce.owners, expected.owners)
