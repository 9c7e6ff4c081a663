"""The diagnosis asks the functions that choose, shows no token, and survives whatever is broken."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from paranmt_hf import EngineConfig
from paranmt_hf.apps import doctor
from paranmt_hf.apps.doctor import diagnose, package_state, read_requirements
from paranmt_hf.corpus.translation.translator import resolve_device
from paranmt_hf.hub.repository import LANGUAGES_OF

ROOT = Path(__file__).parents[2]


def test_defaults_come_from_the_functions_that_choose():
    found, config = diagnose().sections, EngineConfig().resolved()
    assert found["defaults"]["workers"].startswith(f"{config.workers} (local), ")
    assert found["defaults"]["translation"].startswith(f"{resolve_device(None)}, ")
    assert found["machine"]["cores"] == str(len(os.sched_getaffinity(0)))


def test_carried_encoders_have_language_licence_and_size():
    lines = diagnose().sections["carried encoders"]
    assert list(lines) == list(LANGUAGES_OF)
    for name, line in lines.items():
        *languages, license, size = line.split(", ")
        assert (tuple(languages), license) == (LANGUAGES_OF[name], "MIT")
        assert 1 < float(size.removesuffix(" MB")) < 15


def test_the_token_is_not_shown(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secretsecretsecret")
    found = diagnose()
    assert found.sections["Hub"]["token"] == "found"
    for text in (found.summary(), json.dumps(found.to_json())):
        assert "hf_secret" not in text and "(ray)" in text


@pytest.mark.parametrize("question", ["_packages", "_gpus", "_hub"])
def test_a_question_that_fails_is_a_problem(monkeypatch, question):
    def fails(*arguments):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(doctor, question, fails)
    assert sum("ZeroDivisionError: by nothing" in problem for problem in diagnose().problems) == 1


@pytest.mark.slow
def test_broken_packages_are_named_and_nothing_fails(tmp_path):
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
    for section in ("GPUs", "Hub"):
        assert f"{section} cannot be found out: ImportError: undefined symbol: x" in done.stdout


def test_requirements_are_those_of_the_installed_metadata(monkeypatch):
    texts = [
        'ray>=2.60; extra == "ray"',
        'c; extra == "dev"',
        'a; python_version < "4" and extra == "x"',
        "b>=2",
    ]
    monkeypatch.setattr(doctor, "requires", lambda name: texts)
    found = [(requirement.name, extra) for requirement, extra in read_requirements()]
    assert found == [("b", None), ("ray", "ray"), ("a", "x")]


@pytest.mark.parametrize(
    ("installed", "state", "problem"),
    [
        ("2.10", "present", None),
        ("2.0.0rc1", "too old", "pip install 'paranmt-hf[x]'"),
        ("1.9", "too old", ">=2.0 is needed: pip install 'paranmt-hf[x]'"),
        ("unknown", "broken", "its version cannot be read (InvalidVersion"),
        (OSError("half removed"), "broken", "its version cannot be read (OSError: half removed)"),
    ],
)
def test_states(monkeypatch, installed, state, problem):
    def version(name):
        if isinstance(installed, Exception):
            raise installed
        return installed

    monkeypatch.setattr(doctor, "version", version)
    _, found, said = package_state(Requirement("thing>=2.0"), "x")
    assert found == state and (said is None if problem is None else problem in said)


def test_missing_packages_come_with_the_command_that_installs_them():
    found = package_state(Requirement("no-such-package-at-all>=3"), None)
    assert found == (None, "missing", "pip install 'no-such-package-at-all>=3'")
