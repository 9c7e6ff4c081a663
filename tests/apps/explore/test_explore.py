import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from paranmt_hf import InputError, ReleaseConfig
from paranmt_hf.apps.explore.explore import FILES, _report_neighbours, explore, explore_app, write_report
from paranmt_hf.apps.explore.explorer import Explorer
from paranmt_hf.corpus.release.release import read_record, release_files
from tests.refused import refused
from tests.toys import scored_release


@pytest.fixture(scope="module")
def client(made):
    with Explorer(made) as explorer:
        yield TestClient(explore_app(explorer, folder="corpus", neighbours=lambda text, count: [(text.upper(), 0.5)]))


def test_the_page_and_its_files(client):
    for name, kind in {**FILES, "": "text/html"}.items():
        answer = client.get(f"/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
    assert client.get("/../cli/explore.py").status_code == 404
    # Nothing stands in the page that its own policy would refuse.
    page = client.get("/").text
    assert not re.findall(r"<script>|\bon\w+=|style=|https?://", page)


def test_the_command_for_a_folder_with_a_blank(made):
    with Explorer(made) as explorer:
        summary = TestClient(explore_app(explorer, folder="my corpus", neighbours=None)).get("/api/summary").json()
    assert summary["command"] == "paranmt select 'my corpus' --out selected"


def test_answers(client, made):
    summary = client.get("/api/summary").json()
    assert summary["rows"] == 60
    assert summary["record"] == json.loads((made / "build.json").read_text())
    assert {column["name"] for column in summary["columns"]} == set(read_record(made).columns)
    assert summary["command"] == "paranmt select corpus --out selected"
    rows = client.get("/api/rows?min.para_score=0.5&sort=para_score&descending=1").json()
    scores = [row["para_score"] for row in rows["rows"]]
    assert rows["total"] == len(scores) == client.get("/api/histograms?min.para_score=0.5").json()["total"]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0.5
    assert sum(part["rows"] for part in client.get("/api/examples").json()["ranges"]) == 60
    assert client.get("/api/neighbours?sentence=a").json() == {"neighbours": [{"sentence": "A", "similarity": 0.5}]}


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("rows?min.nothing=1", "'nothing' is not a numeric column of this corpus"),
        ("rows?page=-1", "page must be a whole number from 0 to 999,999, was '-1'"),
        ("rows?page=²", "page must be a whole number"),
        ("rows?page=99999999999999999999", "page must be a whole number"),
        ("rows?sort=reference", "cannot sort by 'reference'"),
        ("rows?origin=web", "this corpus has no column 'origin'"),
        ("neighbours", "neighbours need an index and a sentence"),
    ],
)
def test_a_bad_question_gets_a_sentence(client, address, message):
    answer = client.get(f"/api/{address}")
    assert answer.status_code == 400
    assert message in answer.json()["error"]


class Letters:
    """Encodes a sentence as counts of a, b and c."""

    def encode(self, sentences):
        import numpy as np

        return np.array([[sentence.count(letter) for letter in "abc"] for sentence in sentences], float)


def test_neighbours_of_a_report():
    found = _report_neighbours(["a", "ab", "b", "a", "c"], Letters())
    assert found["ab"][:2] == [(0, 0.7071), (2, 0.7071)]
    assert [index for index, _ in found["a"]] == [1, 2, 4]
    assert set(found) == {"a", "ab", "b", "c"}


def test_a_report_is_one_file_with_the_sample(release, tmp_path):
    out = tmp_path / "report.html"
    assert write_report(release, out, encoder=Letters()).rows == 60
    page = out.read_text(encoding="utf8")
    assert not re.findall(r'src="|href="(?!data:,)|https?://(?!www\.w3\.org/2000/svg)', page.partition("<style>")[0])
    values = re.search(r'<script type="application/json" id="report">(.*?)</script>', page, re.DOTALL)[1]
    report = json.loads(values)
    assert len(report["sample"]) == 60
    assert sum(report["all"]["para_score"]) == 60
    assert len(report["neighbours"]) == 60
    assert write_report(release, out, encoder="none").rows == 60
    assert json.loads(re.search(r'id="report">(.*?)</script>', out.read_text())[1])["neighbours"] == {}


def test_a_sentence_cannot_leave_its_place(tmp_path):
    evil = "</script><script>alert(1)</script><!--"
    columns = {"reference": [evil], "translation": ["a"], "para_score": pa.array([0.5], pa.float32())}
    folder = scored_release(tmp_path / "corpus", columns, ReleaseConfig(license="mit"))
    write_report(folder, tmp_path / "report.html", encoder="none")
    page = (tmp_path / "report.html").read_text(encoding="utf8")
    assert page.count("</script>") == 1 + sum(name.endswith(".js") for name in FILES)
    assert "alert(1)" in page


def test_a_report_that_cannot_be_written(release, tmp_path):
    with refused("out", path=tmp_path):
        write_report(release, tmp_path)
    with refused("out", path=tmp_path / "no/report.html"):
        write_report(release, tmp_path / "no" / "report.html")
    (tmp_path / "notes.txt").write_text("mine")
    with refused("out", path=tmp_path / "notes.txt"):
        write_report(release, tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.slow
def test_neighbours_come_from_an_index(made, tmp_path):
    from paranmt_hf.apps.explore.explore import _index_neighbours
    from paranmt_hf.search.index import SentenceIndex

    SentenceIndex.build(made, tmp_path / "index")
    with Explorer(made) as explorer:
        client = TestClient(
            explore_app(explorer, folder="corpus", neighbours=_index_neighbours(tmp_path / "index", made))
        )
        reference = client.get("/api/rows").json()["rows"][0]["reference"]
        found = client.get("/api/neighbours", params={"sentence": reference}).json()["neighbours"]
        assert client.get("/api/summary").json()["ask_any"]
    assert found[0] == {"sentence": reference, "similarity": pytest.approx(1, abs=1e-5)}
    assert len(found) == 20
    cosines = [entry["similarity"] for entry in found]
    assert cosines == sorted(cosines, reverse=True)
    with pytest.raises(InputError, match="holds no index.json; expected an index"):
        explore(made, index=tmp_path)


@pytest.mark.slow
def test_an_index_of_other_text_is_refused(made, tmp_path):
    """Also of one side of the release as a text file."""
    from paranmt_hf.search.index import SentenceIndex

    references = pq.read_table(release_files(made)[0])["reference"].to_pylist()
    (tmp_path / "text").write_text("\n".join(references), encoding="utf8")
    pq.write_table(pa.table({"reference": references[1:]}), tmp_path / "text.parquet")
    for name in ("text", "text.parquet"):
        SentenceIndex.build(tmp_path / name, tmp_path / f"{name}.index")
        with pytest.raises(InputError) as caught:
            explore(made, index=tmp_path / f"{name}.index")
        assert (caught.value.option, caught.value.path) == ("index", tmp_path / f"{name}.index")


def test_ctrl_c_ends_the_page(made, monkeypatch):
    uvicorn = pytest.importorskip("uvicorn")

    served = []

    def interrupted(*arguments, **options):
        served.append(options["sockets"])
        raise KeyboardInterrupt

    monkeypatch.setattr(uvicorn.Server, "run", interrupted)
    explore(made)
    assert len(served) == 1
