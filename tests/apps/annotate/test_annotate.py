"""The commands below `paranmt annotate`, from a release to the table."""

import contextlib
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest

from paranmt_hf.apps.annotate.annotate import sample_for_annotation, summarise_annotation
from paranmt_hf.apps.annotate.answers import AnswerStore, Rating
from paranmt_hf.apps.annotate.sample import AnnotationConfig, AnnotationSample
from paranmt_hf.cli import main
from tests.cli.commands import fails, recorded_options

THIRDS = ["--ranges", "0", "0.3", "0.6", "1", "--per-range", "3"]


@pytest.fixture
def judged(release, tmp_path):
    """A sample with nine pairs of a release."""
    config = AnnotationConfig(per_range=3, ranges=(0.0, 0.3, 0.6, 1.0))
    return sample_for_annotation(release, tmp_path / "judged", config=config).folder


@pytest.fixture
def rated(judged):
    """The same, rated by two."""
    sample = AnnotationSample.read(judged)
    store = AnswerStore(judged / "answers.json", sample)
    for number, item in enumerate(sample.items):
        store.put("Ada", number, Rating(2 * item.range + 1, 3))
        store.put("Grace", number, Rating(2 * item.range, 2))
    return judged


def test_from_a_release_to_the_table(release, tmp_path, capsys):
    out = tmp_path / "judged"
    assert main(["annotate", "sample", str(release), "--out", str(out), *THIRDS]) == 0
    printed = capsys.readouterr().out
    assert "judged: 9 pairs\n  (0.0, 0.3]                3 of" in printed
    assert printed.endswith(f"rate them: paranmt annotate serve {out}\n")
    sample = AnnotationSample.read(out)
    scores = pq.read_table(release / "data")["para_score"].to_numpy()
    assert [part.pairs for part in sample.ranges] == [
        int(((scores > low) & (scores <= high)).sum()) for low, high in ((0, 0.3), (0.3, 0.6), (0.6, 1))
    ]
    assert recorded_options(out / "sample.json")["per-range"] == 3
    # The same command again finds it done; other settings are refused.
    before = (out / "sample.json").read_bytes()
    assert main(["annotate", "sample", str(release), "--out", str(out), *THIRDS]) == 0
    assert "(was made already)" in capsys.readouterr().out
    fails(capsys, ["annotate", "sample", release, "--out", out, *THIRDS, "--seed", "1"], "was 0, now 1")
    assert (out / "sample.json").read_bytes() == before


def test_tables(rated, tmp_path, capsys):
    words = ["annotate", "table", str(rated), "--json", str(tmp_path / "t.json")]
    assert main(words) == 0
    printed = capsys.readouterr().out
    # Ada gives 1, 3, 5, which are 1, 2, 3; Grace gives 0, 2, 4, which are 1, 1, 3.
    assert "(0.3, 0.6]" in printed and "agreement of 2 annotators" in printed
    assert "| 3 (50.0) | 3 (50.0) | 0 (0.0) |" in re.sub(" +", " ", printed)
    values = json.loads((tmp_path / "t.json").read_text())
    assert [found["paraphrase"] for found in values["together"]] == [[6, 0, 0], [3, 3, 0], [0, 0, 6]]
    assert values["agreement"]["paraphrase"]["same"] == pytest.approx(2 / 3)
    assert values == summarise_annotation(rated).to_json()


def test_answers_of_two_computers_come_together(rated, tmp_path, capsys):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(rated / "sample.json", other)
    file = tmp_path / "answers.csv"
    assert main(["annotate", "export", str(rated), "--out", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: 18 answers\n"
    assert main(["annotate", "import", str(other), str(file)]) == 0
    assert capsys.readouterr().out == "18 added, 0 replaced, 0 were there\n"
    assert summarise_annotation(other) == summarise_annotation(rated)
    file.write_text(file.read_text().replace(",Grace,0,2,", ",Grace,0,1,"))
    fails(capsys, ["annotate", "import", other, file], "Grace has another answer to item", "--replace")
    assert main(["annotate", "import", str(other), str(file), "--replace"]) == 0
    assert capsys.readouterr().out == "0 added, 3 replaced, 15 were there\n"


def test_bad_input(release, judged, tmp_path, capsys):
    command = ["annotate", "sample", release, "--out", tmp_path / "out"]
    fails(capsys, [*command, "--ranges", "0.2", "0.1"], "must be ascending scores from -1 to 1")
    fails(capsys, [*command, "--ranges", "-1", "-0.9", "1"], "has no pair whose score is in the range (-1.0, -0.9]")
    assert not (tmp_path / "out").exists()
    fails(capsys, ["annotate", "sample", tmp_path / "no", "--out", tmp_path / "out"], str(tmp_path / "no"))
    fails(capsys, ["annotate", "table", judged], "nobody has rated a pair of", "paranmt annotate serve")
    fails(capsys, ["annotate", "export", judged, "--out", tmp_path / "a.csv"], "nobody has rated a pair of")
    assert not (judged / "answers.json").exists()
    fails(capsys, ["annotate", "table", tmp_path], "holds no sample.json")
    fails(capsys, ["annotate", "import", judged, tmp_path / "a.csv"], "cannot read", "expected answers as CSV")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        fails(capsys, ["annotate", "serve", judged, "--port", port], f"port {port} is taken by another program")
    fails(capsys, ["annotate", "serve", judged, "--annotators", ""], "the name of an annotator must have")


@contextlib.contextmanager
def served(folder, *words):
    """A page that is being served; gives the process and what it printed first."""
    pytest.importorskip("uvicorn")
    command = [sys.executable, "-m", "paranmt_hf.cli", "annotate", "serve", str(folder), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, urlsplit(process.stderr.readline().split()[-1])
    finally:
        process.kill()
        process.communicate()


def put(connection, address, item, name="Ada", headers=(), **values):
    answer = {"annotator": name, "strength": 3, "fluency": 3, "skipped": False, "note": "", "revision": 0, **values}
    headers = {"Content-Type": "application/json", **dict(headers)}
    connection.request("PUT", f"/answers/{item}?{address.query.partition('&')[0]}", json.dumps(answer), headers)
    response = connection.getresponse()
    return response.status, response.read().decode()


@pytest.mark.slow
@pytest.mark.parametrize("confirmed", [1, 20, 60])
def test_a_kill_loses_nothing_that_was_confirmed(judged, confirmed):
    stored = []

    def rate(address):
        connection = http.client.HTTPConnection(address.hostname, address.port)
        with contextlib.suppress(OSError, http.client.HTTPException):
            for name in range(1000):
                for item in range(9):
                    assert put(connection, address, item, name=f"person {name}")[0] == 200
                    stored.append((f"person {name}", item))

    with served(judged) as (process, address):
        person = threading.Thread(target=rate, args=(address,))
        person.start()
        while len(stored) < confirmed and person.is_alive():
            time.sleep(0.001)
        # In the middle of the next answer.
        process.send_signal(signal.SIGKILL)
        process.wait()
        person.join()
    assert len(stored) >= confirmed
    store = AnswerStore(judged / "answers.json", AnnotationSample.read(judged))
    found = [(name, item) for name, items in store.answers().items() for item in items]
    # The last one may have been stored and not been confirmed.
    assert set(stored) <= set(found) and len(found) <= len(stored) + 1


@pytest.mark.slow
def test_the_page_is_served_until_ctrl_c(judged):
    with served(judged, "--annotators", "Ada", "Grace") as (process, address):
        assert address.hostname == "127.0.0.1" and address.query.endswith("&annotator=Ada")
        assert "&annotator=Grace" in process.stderr.readline()
        connection = http.client.HTTPConnection(address.hostname, address.port)
        assert put(connection, address, 0)[0] == 200
        own = f"http://{address.netloc}"
        assert put(connection, address, 1, headers={"Origin": own})[0] == 200
        for origin in ("http://127.0.0.1:1", "null", "http://evil.example"):
            assert put(connection, address, 2, headers={"Origin": origin})[0] == 403
        assert put(connection, address._replace(query="token=wrong"), 2)[0] == 403
        assert put(connection, address, 2, name="Zoe")[0] == 400
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert printed == "Ada: 2 of 9 rated, 0 skipped\n"
    assert not list(judged.glob("*journal*"))
