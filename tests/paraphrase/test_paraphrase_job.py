"""The record beside a file of paraphrases: neither it nor the file is ever there by half."""

import os

from paranmt_hf.paraphrase.paraphrase_job import made_before, put_with_record


def test_what_is_half_written_lies_in_the_work_folder(tmp_path, monkeypatch):
    out, work = tmp_path / "out.jsonl", tmp_path / "out.jsonl.work"
    work.mkdir()
    (work / "out.jsonl").write_text("{}\n")
    seen, whole = [], os.fsync

    def noting(file):
        seen.append([path.name for path in tmp_path.iterdir()])
        whole(file)

    # The record is whole then, and has not its name yet: a kill leaves what lies there.
    monkeypatch.setattr(os, "fsync", noting)
    record = put_with_record(work / "out.jsonl", out, {"seed": 1}, {"lines": 1})
    assert seen == [["out.jsonl.work"]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "out.jsonl.json", "out.jsonl.work"]
    assert not list(work.iterdir())
    assert made_before(out, {"seed": 1}, "paraphrase") == record
