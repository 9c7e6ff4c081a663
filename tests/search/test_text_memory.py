"""A memory of texts: against a slow one, over processes, kills and damage."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from paranmt_hf import InputError, StaticEncoder, TextMemory
from paranmt_hf.search.growing_index import GrowingIndex

TEXTS = [
    "How do I reset my password?",
    "What should I do to reset my password?",
    "How do I reset my user name?",
    "Turn the lights in the kitchen on.",
    "Turn the lights in the kitchen off.",
    "Please turn on the lights in the kitchen.",
    "A man is playing a guitar.",
    "A man plays a guitar.",
]
ANSWERS = [f"answer {number}" for number in range(len(TEXTS))]


@pytest.fixture(scope="module")
def encoder():
    return StaticEncoder.from_pretrained("small")


def slow_memory(encoder, texts):
    """Number of each text that is kept, and the number of the first kept text of the same meaning for others."""
    kept, found = [], []
    for text in texts:
        same = [meaning.probability for meaning in encoder.same_meaning([text] * len(kept), kept)]
        if same and max(same) >= 0.5:
            found.append((True, 1 + int(np.argmax(same))))
        else:
            kept.append(text)
            found.append((False, len(kept)))
    return kept, found


@pytest.mark.parametrize("at_once", [1, 3, len(TEXTS)])
def test_known_texts_are_not_added(tmp_path, encoder, at_once):
    kept, expected = slow_memory(encoder, TEXTS)
    with TextMemory(tmp_path / "memory") as memory:
        found = []
        for start in range(0, len(TEXTS), at_once):
            found += memory.add(TEXTS[start : start + at_once], ANSWERS[start : start + at_once])
        assert [(each.known, each.id) for each in found] == expected
        assert [text for _, text, _ in memory.texts()] == kept
        assert len(memory) == len(kept) < len(TEXTS)
        off = found[4]
        assert off.nearest.text == TEXTS[3]
        assert off.reasons == off.nearest.meaning.reasons == ("`off` and `on` are opposites",)
        assert found[1].nearest.value == ANSWERS[0]
        assert found[1].nearest.cosine == pytest.approx(cosine(encoder, *TEXTS[:2]), abs=0.01)


def cosine(encoder, first, second):
    return float(encoder.similarity(*encoder.encode([first, second])[:, None])[0, 0])


def test_texts_are_found_and_removed(tmp_path):
    memory = TextMemory(tmp_path)
    memory.add(TEXTS)
    (hits,) = memory.find("how can i reset my password", top=3)
    assert [hit.id for hit in hits][:2] == [1, 2]
    assert [hit.meaning.same for hit in hits] == [True, False, False]
    assert [hit.cosine for hit in hits] == sorted((hit.cosine for hit in hits), reverse=True)
    assert memory.remove([1, 77]) == 1
    assert memory.remove(1) == 0
    assert memory.find(TEXTS[0])[0][0].id == 2
    # A number is not given again, also when the file is opened anew.
    before = len(memory)
    memory.close()
    memory = TextMemory(tmp_path)
    assert len(memory) == before
    (added,) = memory.add(TEXTS[0])
    assert (added.known, added.id) == (False, 6)
    assert memory.add([]) == memory.find([]) == []
    assert TextMemory(tmp_path / "empty").find("anything") == [[]]


def test_two_memories_of_one_folder_see_each_other(tmp_path):
    one, other = TextMemory(tmp_path), TextMemory(tmp_path)
    one.add(TEXTS[0], "from one")
    (again,) = other.add(TEXTS[1])
    assert again.known
    assert again.nearest.value == "from one"
    other.add(TEXTS[6])
    one.remove(1)
    assert [text for _, text, _ in other.texts()] == [TEXTS[6]]
    assert len(one) == len(other) == 1
    assert not other.add(TEXTS[1])[0].known


def test_results_are_the_same_after_opening_again(tmp_path):
    lines = [f"Room {number} is on floor {number % 7}." for number in range(60)]
    with TextMemory(tmp_path / "one") as memory:
        expected = memory.add([*lines, *TEXTS])
    found = []
    for line in [*lines, *TEXTS]:
        with TextMemory(tmp_path / "other") as memory:
            found += memory.add(line)
    assert [(each.known, each.id, each.reasons) for each in found] == [
        (each.known, each.id, each.reasons) for each in expected
    ]


ADD = """
import sys
from paranmt_hf import TextMemory
with TextMemory(sys.argv[1]) as memory:
    for number in range(100_000):
        memory.add(f"ticket number {number} of {number * 7919 % 9973}")
        if number == 20:
            print("added", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("wait", [0.2, 0.5, 1.0])
def test_a_killed_process_leaves_a_whole_memory(tmp_path, wait):
    process = subprocess.Popen([sys.executable, "-c", ADD, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"added\n"
    time.sleep(wait)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with TextMemory(tmp_path) as memory:
        numbers = [number for number, _, _ in memory.texts()]
        assert len(memory) == len(numbers) > 0
        assert numbers == list(range(1, len(numbers) + 1))
        assert not memory.add("a new text of another kind")[0].known


def test_bad_input(tmp_path, encoder):
    with TextMemory(tmp_path / "memory") as memory:
        memory.add(TEXTS[:2])
    (tmp_path / "file").write_text("text")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "memory.sqlite").write_bytes(b"no database" * 100)
    for call, option, path in (
        (lambda: TextMemory(tmp_path / "memory", "base"), "encoder", tmp_path / "memory"),
        (lambda: TextMemory(tmp_path / "file"), "folder", tmp_path / "file"),
        (lambda: TextMemory(tmp_path / "damaged"), "folder", tmp_path / "damaged" / "memory.sqlite"),
        (lambda: TextMemory(tmp_path / "new", threshold=0), "threshold", None),
        (lambda: TextMemory(tmp_path / "new", "multilingual"), None, None),
        (lambda: TextMemory(tmp_path / "memory").add(["a", "b"], ["one"]), "values", None),
        (lambda: TextMemory(tmp_path / "memory").add(["a"], [1]), "values", None),
        (lambda: TextMemory(tmp_path / "memory").remove("12"), "ids", None),
        (lambda: TextMemory(tmp_path / "memory").find("a", top=0), "top", None),
    ):
        with pytest.raises(InputError) as raised:
            call()
        assert (raised.value.option, raised.value.path) == (option, path)
    with TextMemory(tmp_path / "memory") as memory:
        assert len(memory) == 1


def test_threads_share_a_memory(tmp_path):
    memory, errors = TextMemory(tmp_path), []

    def work(number):
        try:
            for part in range(10):
                memory.add([f"thread {number} wrote text {part} about {part * 17 + number}"])
                memory.find("thread 1 wrote")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    numbers = [number for number, _, _ in memory.texts()]
    assert numbers == list(range(1, len(memory) + 1))


def test_texts_without_a_known_word_are_known_letter_by_letter(tmp_path):
    with TextMemory(tmp_path) as memory:
        found = memory.add(["\u65e5\u672c\u8a9e", "\u65e5\u672c\u8a9e", "\u65e5\u672c", ""])
        assert [(each.known, each.id) for each in found] == [(False, 1), (True, 1), (False, 2), (False, 3)]
        assert [each.known for each in memory.add(["\u65e5\u672c", "", "a"])] == [True, True, False]


def test_processes_open_a_new_memory_at_once(tmp_path):
    command = f"from paranmt_hf import TextMemory; TextMemory({str(tmp_path)!r}).add('one text')"
    processes = [subprocess.Popen([sys.executable, "-c", command]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    with TextMemory(tmp_path) as memory:
        assert [text for _, text, _ in memory.texts()] == ["one text"]


def test_a_memory_that_is_damaged_in_the_middle(tmp_path):
    path = tmp_path / "memory.sqlite"
    with TextMemory(tmp_path) as memory:
        memory.add([f"ticket {number} of room {number * 7 % 100}" for number in range(300)])
    content = bytearray(path.read_bytes())
    content[8192:-4096] = b"\xff" * (len(content) - 12288)
    path.write_bytes(content)
    with pytest.raises(InputError) as raised, TextMemory(tmp_path) as memory:
        memory.add("something else")
    assert raised.value.path == path
    memory = TextMemory(tmp_path / "other")
    memory.close()
    with pytest.raises(InputError) as raised:
        memory.find("anything")
    assert raised.value.path == tmp_path / "other" / "memory.sqlite"


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_index_finds_the_nearest_vectors():
    random = np.random.default_rng(0)
    vectors = unit(random.standard_normal((500, 40))).astype(np.float32)
    index = GrowingIndex(40)
    for part in np.array_split(np.arange(500), 7):
        index.add(vectors[part], part * 10)
    index.remove(np.array([30, 40]))
    assert len(index) == 498
    items, cosines = index.nearest(vectors, 3)
    exact = vectors @ vectors.T
    exact[:, [3, 4]] = -1
    assert (items[:, 0] == np.argmax(exact, axis=1) * 10)[np.r_[:3, 5:500]].all()
    np.testing.assert_allclose(cosines[:, 0], exact.max(axis=1), atol=0.02)


def test_the_index_with_lists_finds_what_it_found_before():
    random = np.random.default_rng(1)
    centres = random.standard_normal((400, 64))
    vectors = unit(centres[random.integers(0, 400, 20_000)] + 0.5 * random.standard_normal((20_000, 64)))
    vectors = vectors.astype(np.float32)
    index = GrowingIndex(64)
    index.add(vectors, np.arange(20_000))
    assert index.wants_lists
    before, _ = index.nearest(vectors[:500], 5)
    listed = index.with_lists(seed=1)
    assert len(listed) == 20_000
    assert not listed.wants_lists
    after, _ = listed.nearest(vectors[:500], 5)
    assert (after[:, 0] == np.arange(500)).all()
    assert (before == after).mean() > 0.97
