"""A corpus in another language than English: tokens, scores, card, and what is refused."""

import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from paranmt_hf import (
    EncoderConfig,
    Lexicon,
    ReleaseConfig,
    ReleaseFilter,
    StatsConfig,
    TrainConfig,
    describe_corpora,
    import_pairs,
    parse_pairs,
    select,
    train,
)
from paranmt_hf.corpus.reading.readers import LineFiles, TableFiles
from paranmt_hf.corpus.score import rescore
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.lexicon.lexicon import LexiconConfig
from tests.refused import refused
from tests.toys import LOCAL, RELEASE, make, rows_of, write_vectors

GERMAN = ["Geht's dem Hund gut?", "Der Mann geht mit dem Hund.", "Eine Frau geht."]


def vectors_of(folder, texts):
    words = {word.strip(".,?!").lower() for text in texts for word in text.split()}
    return write_vectors(folder / "vectors.txt", sorted(words))


@pytest.fixture
def vectors(tmp_path):
    return vectors_of(tmp_path, GERMAN)


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"reference": GERMAN, "translation": GERMAN[::-1]}), path)
    return TableFiles([path], {"reference": "reference", "translation": "translation"})


def header_of(folder):
    return yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])


def test_build(tmp_path, vectors):
    (tmp_path / "text.en").write_text("".join(f"{line}\n" for line in ("a b", "c d", "e f")))
    (tmp_path / "text.de").write_text("".join(f"{line}\n" for line in GERMAN))
    bitext = LineFiles({"source": tmp_path / "text.en", "reference": tmp_path / "text.de"})
    made = make(bitext, tmp_path / "corpus", vectors, release=replace(RELEASE, language="de"))
    assert header_of(tmp_path / "corpus")["language"] == ["de"]
    card = (tmp_path / "corpus" / "README.md").read_text()
    assert "3 pairs of German sentences" in card
    assert "Each pair is the German side of a bitext" in card
    assert "German side of the bitext, as written" in card
    assert "English" not in card
    assert [row["reference_length"] for row in rows_of(tmp_path / "corpus")] == [5, 7, 4]
    assert made.record.settings["release"]["language"] == made.record.settings["scorer"]["language"] == "de"
    with refused("out", path=tmp_path / "corpus"):
        make(bitext, tmp_path / "corpus", vectors)
    # A selection of it is German too, and a card says so.
    select(tmp_path / "corpus", tmp_path / "less", ReleaseFilter(max_length=6))
    assert header_of(tmp_path / "less")["language"] == ["de"]


def test_word_vectors_know_the_words_of_the_language(tmp_path, pairs, vectors):
    """`geht's` is one word, for which the English definition has two; the middle pair is a sentence and itself."""
    with vectors.open("a") as more:
        more.write("geht 9 9 9 9 9 9 9 9\n's 9 9 9 9 9 9 9 9\n")
    config = ReleaseConfig(license="mit", language="de")
    import_pairs(pairs, tmp_path / "out", scorer=vectors, release=config, engine=LOCAL)
    table = {}
    for line in vectors.read_text().splitlines():
        word, *numbers = line.split()
        # The first of two lines for a word counts.
        table.setdefault(word, np.array(numbers, float))
    first = [table[word] for word in ("geht's", "dem", "hund", "gut")]
    second = [table[word] for word in ("eine", "frau", "geht")]
    left, right = np.mean(first, axis=0), np.mean(second, axis=0)
    cosine = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
    scores = [row["para_score"] for row in rows_of(tmp_path / "out")]
    assert scores == pytest.approx([cosine, 1, cosine], abs=1e-5)


def test_an_encoder_reads_sentences_and_not_the_tokens_of_the_language(tmp_path):
    from paranmt_hf.encoders.saving import save
    from tests.training.toys import encoder_of, synonyms

    folder = tmp_path / "encoder"
    save(encoder_of(synonyms(20), dimension=8), folder)
    (folder / "README.md").write_text("---\nlanguage: [cs, de]\n---\n# Encoder\n")
    scorer = folder
    release = ReleaseConfig(license="mit", language="de")
    texts = ["left1's right2 left3", "left1's left4"]
    pq.write_table(pa.table({"reference": texts, "translation": ["right1 left2", "s right3"]}), tmp_path / "p.parquet")
    found = []
    for code in ("de", "cs"):
        config = replace(release, language=code)
        import_pairs(tmp_path / "p.parquet", tmp_path / code, scorer=scorer, release=config, engine=LOCAL)
        found.append([row["para_score"] for row in rows_of(tmp_path / code)])
    encoder = NamedEncoder(str(scorer)).load()
    vectors = encoder.encode([*texts, "right1 left2", "s right3"])
    expected = [
        vectors[row] @ vectors[row + 2] / np.linalg.norm(vectors[row]) / np.linalg.norm(vectors[row + 2])
        for row in (0, 1)
    ]
    assert found == [pytest.approx(expected, abs=1e-5)] * 2
    # In `left1's` the encoder knows a word, which it would not if it started from the tokens of the language.
    assert abs(expected[0]) > 1e-3
    (folder / "README.md").write_text("---\nlanguage: en\n---\n# Encoder\n")
    with refused():
        import_pairs(tmp_path / "p.parquet", tmp_path / "other", scorer=folder, release=release, engine=LOCAL)
    assert not (tmp_path / "other").exists()
    assert not (tmp_path / "other.work").exists()


def test_what_is_for_english_is_refused(tmp_path, pairs, vectors):
    release = ReleaseConfig(license="mit", language="de")
    with refused():
        import_pairs(pairs, tmp_path / "out", scorer="small", release=release, engine=LOCAL)
    with refused():
        # No encoder of the package reads Japanese.
        import_pairs(pairs, tmp_path / "out", release=replace(release, language="ja"), engine=LOCAL)
    with refused():
        import_pairs(pairs, tmp_path / "out", scorer=vectors, release=release, engine=LOCAL, add=["negation_mismatch"])
    with refused():
        ReleaseConfig(license="mit", language="Deutsch")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.work").exists()


def test_scoring_again_keeps_the_language(tmp_path, pairs, vectors):
    release = ReleaseConfig(license="mit", language="de")
    first = vectors
    import_pairs(pairs, tmp_path / "out", scorer=first, release=release, engine=LOCAL)
    assert not rescore(tmp_path / "out", scorer=vectors, engine=LOCAL).fresh
    with refused():
        rescore(tmp_path / "out", scorer="small", engine=LOCAL)
    # By default the scorer is the encoder of the package for the language.
    german = rescore(tmp_path / "out", engine=LOCAL)
    assert german.fresh and german.record.settings["scorer"]["name"] == "de (an encoder of paranmt-hf)"
    assert german.record.settings["scorer"]["language"] == "de"
    other = tmp_path / "other.txt"
    shutil.copy(vectors, other)
    made = rescore(tmp_path / "out", scorer=other, engine=LOCAL)
    assert made.fresh
    assert [row["reference_length"] for row in rows_of(tmp_path / "out")] == [5, 7, 4]
    assert header_of(tmp_path / "out")["language"] == ["de"]


@pytest.mark.slow
def test_the_card_of_a_model_names_the_languages_that_it_learned(tmp_path, pairs, vectors):
    folders = []
    for language in ("de", "en"):
        release = replace(RELEASE, language=language)
        import_pairs(pairs, tmp_path / language, scorer=vectors, release=release)
        folders.append(tmp_path / language)
    training = TrainConfig(epochs=1, batch_size=2)
    made = {
        name: train(data, tmp_path / name, encoder=EncoderConfig(model="word", dimension=4), config=training)
        for name, data in {"german": folders[:1], "both": folders, "english": folders[1:]}.items()
    }
    assert all(model.folder.is_dir() for model in made.values())
    spoken = {name: header_of(tmp_path / name)["language"] for name in made}
    assert spoken == {"german": ["de"], "both": ["de", "en"], "english": ["en"]}
    alone = {name: "trained on English alone" in (tmp_path / name / "README.md").read_text() for name in made}
    assert alone == {"german": False, "both": False, "english": True}


CHINESE = ["我今天去北京看朋友", "我今天去北京看朋友了", "他们昨天在家里看书", "孩子们在公园里玩球"]


@pytest.fixture
def chinese(tmp_path):
    """A release of Chinese, whose words are characters; each translation is its reference backwards."""
    path = tmp_path / "chinese.parquet"
    backwards = [sentence[::-1] for sentence in CHINESE]
    pq.write_table(pa.table({"reference": CHINESE, "translation": backwards}), path)
    scorer = write_vectors(tmp_path / "characters.txt", sorted(set("".join(CHINESE))))
    release = replace(RELEASE, language="zh")
    return import_pairs(path, tmp_path / "chinese", scorer=scorer, release=release, engine=LOCAL).folder


def references_of(folder):
    return [row["reference"] for row in rows_of(folder)]


def test_near_duplicates_are_of_words_of_the_language(chinese, tmp_path):
    """8 of 9 pairs of characters are shared; cut at blanks, no two sentences would share anything."""
    config = ReleaseFilter(drop_near_duplicates="reference")
    found = select(chinese, tmp_path / "less", config)
    assert references_of(tmp_path / "less") == [CHINESE[0], *CHINESE[2:]]
    assert found.selection.filters[0].settings["language"] == "zh"
    assert not select(chinese, tmp_path / "less", config).fresh


def test_contamination_is_a_run_of_words_of_the_language(chinese, tmp_path):
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "test.tsv").write_text(f"5.0\t{CHINESE[0]}\t他们在读书看报\n", encoding="utf8")
    config = ReleaseFilter(decontaminate=(str(tmp_path / "sets"),))
    found = select(chinese, tmp_path / "less", config)
    # The second sentence shares eight words in a row with the first.
    assert references_of(tmp_path / "less") == CHINESE[2:]
    assert found.selection.filters[0].settings["language"] == "zh"


def test_figures_count_words_of_the_language(chinese, release, tmp_path):
    record = describe_corpora(chinese)
    (found,) = record.corpora
    assert (found.tokens, found.types) == (37, len(set("".join(CHINESE))))
    assert record.tokens.startswith("lower-cased words of Chinese, punctuation marks apart")
    (tmp_path / "text.txt").write_text("\n".join(CHINESE))
    beside = describe_corpora([chinese / "data", tmp_path / "text.txt"])
    assert [each.tokens for each in beside.corpora] == [37, 37]
    given = StatsConfig(language="zh")
    assert describe_corpora(tmp_path / "text.txt", config=given).corpora[0].tokens == 37
    assert describe_corpora(tmp_path / "text.txt").corpora[0].tokens == 4
    with refused("language"):
        describe_corpora([chinese, release])
    assert describe_corpora([chinese, release], config=given).corpora[0].tokens == 37
    with refused():
        StatsConfig(language="Chinese")


def test_a_lexicon_has_words_of_the_language(chinese, release, tmp_path):
    config = LexiconConfig(min_score=-1.0, min_count=1)
    made = Lexicon.build(chinese, tmp_path / "lexicon", config=config)
    assert made.record.words == len(set("".join(CHINESE))) and made.record.settings.language == "zh"
    # Of each of two sentences both sides have it beside "京".
    (found,) = (each for each in made.nearest("北", min_count=1, top=100) if each.word == "京")
    assert found.count == 4
    with refused():
        made.nearest("北京")
    with refused():
        Lexicon.build([chinese, release], tmp_path / "both", config=config)


@pytest.mark.parametrize("parser", ["link-grammar", "stanza"])
def test_parsers_of_english_are_refused(chinese, tmp_path, parser):
    with refused("parser"):
        parse_pairs(chinese, tmp_path / "parsed", parser=parser)
    with refused("parser"):
        describe_corpora(chinese, parser=parser)
    (tmp_path / "trees.tsv").write_text("".join(f"{each}\t(S (NP (X a)))\n" for each in CHINESE), encoding="utf8")
    (found,) = describe_corpora(chinese, parser=[tmp_path / "trees.tsv"]).corpora
    assert found.parses is not None and found.parses.parsed == 4
