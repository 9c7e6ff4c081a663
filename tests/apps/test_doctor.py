"""The diagnosis asks those who choose, shows no token, and survives whatever is broken."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paranmt_hf.apps import doctor
from paranmt_hf.apps.doctor import diagnose
from paranmt_hf.cli import main
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.translation import device as devices
from paranmt_hf.training import arithmetic
from paranmt_hf.training.arithmetic import Arithmetic

ROOT = Path(__file__).parents[2]


def test_choices_come_from_those_who_choose(monkeypatch):
    monkeypatch.setattr(arithmetic, "choose", lambda config: Arithmetic("torch", "float32"))
    monkeypatch.setattr(EngineConfig, "resolved", lambda self: EngineConfig("local", 7, 3, 2))
    monkeypatch.setattr(devices, "resolve_device", lambda device: "cuda")
    found = diagnose()
    assert found.choices.train == {"steps": "torch", "mining": "float32"}
    assert found.choices.build["workers"] == 7 and found.choices.build["threads"] == 3
    assert found.choices.build["translator"] == "transformers" and found.choices.build["dtype"] == "float16"
    assert found.choices.build["batch_tokens"] == 8192
    assert "training computes with torch, which takes longer: pip install 'paranmt-hf[fast]'" in found.problems
    assert found.machine.cores == len(os.sched_getaffinity(0)) and found.torch_seconds is not None


def test_the_command(capsys, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secretsecretsecret")
    monkeypatch.setattr(doctor, "core_limit", lambda: 0.5)
    monkeypatch.setattr(doctor, "visible_cores", lambda: 64)
    assert main(["doctor", "--quick"]) == 0
    text = capsys.readouterr().out
    assert "a token is there" in text and "hf_secret" not in text
    assert "64, time for 0.5 by the control group" in text and "not looked for (torch was not imported)" in text
    assert "64 cores are seen, but the control group has time for 0.5" in text and "give --workers 1" in text
    assert main(["doctor", "--quick", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["choices"] is None and values["machine"]["gpus"] is None and values["hub"]["token"] is True
    assert {"ray", "fast"} <= {package["extra"] for package in values["packages"]}
    assert "secret" not in json.dumps(values)


def test_the_hub_is_asked_only_when_told(monkeypatch):
    import huggingface_hub

    def whoami(self):
        raise ConnectionError("no route to host for hf_secretsecretsecret")

    monkeypatch.setenv("HF_TOKEN", "hf_secretsecretsecret")
    monkeypatch.setattr(huggingface_hub.HfApi, "whoami", whoami)
    assert diagnose(quick=True).hub.answer is None
    answer = diagnose(quick=True, online=True).hub.answer
    assert answer == "no answer (ConnectionError: no route to host for (token))"
    monkeypatch.setattr(huggingface_hub.HfApi, "whoami", lambda self: {"name": "me"})
    assert "knows the token as 'me'" in diagnose(quick=True, online=True).hub.answer
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:1")
    started = time.perf_counter()
    assert diagnose(quick=True, online=True).hub.answer.startswith("no answer (")
    assert time.perf_counter() - started < 10


@pytest.mark.parametrize("question", ["_packages", "_machine", "_places", "_hub"])
def test_a_question_that_fails_is_a_problem(monkeypatch, question):
    def fails(*arguments):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(doctor, question, fails)
    found = diagnose(quick=True)
    assert sum("ZeroDivisionError: by nothing" in problem for problem in found.problems) == 1


def test_broken_packages_are_named_and_nothing_falls_over(tmp_path):
    for name in ("torch", "huggingface_hub", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('undefined symbol: x')\n")
    done = subprocess.run(
        [sys.executable, "-m", "paranmt_hf.cli", "doctor"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert (
        "what torch sees (it cannot be imported) cannot be found out: ImportError: undefined symbol: x" in done.stdout
    )
    assert "what is known of the Hub cannot be found out: ImportError: undefined symbol: x" in done.stdout
