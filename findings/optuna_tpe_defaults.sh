#!/usr/bin/env bash
# optuna 4.9.0 and 5.0.0: one seed, one objective, other trials from the 11th on, because the default of `multivariate`
# of TPESampler changed. Saying multivariate=True in both does not make them equal where a parameter is a float.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat > "$folder/search.py" <<'PYTHON'
import json
import sys
import warnings

import optuna

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def trials(**options):
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1, **options))
    study.optimize(lambda trial: (trial.suggest_float("x", -5, 5) - 1) ** 2 + trial.suggest_int("y", 0, 9), n_trials=30)
    return [[round(trial.params["x"], 6), trial.params["y"]] for trial in study.trials]


json.dump({"default": trials(), "said": trials(multivariate=True)}, sys.stdout)
PYTHON

for version in 4.9.0 5.0.0; do
    python3 -m venv --without-pip "$folder/$version"
    python3 -m pip --python "$folder/$version/bin/python" install --no-compile --quiet --disable-pip-version-check "optuna==$version" numpy==2.3.5
    "$folder/$version/bin/python" "$folder/search.py" > "$folder/$version.json"
done

python3 - "$folder" <<'PYTHON'
import json
import sys
from pathlib import Path

old, new = (json.loads((Path(sys.argv[1]) / f"{version}.json").read_text()) for version in ("4.9.0", "5.0.0"))
first = next((number for number, (one, two) in enumerate(zip(old["default"], new["default"]), 1) if one != two), None)
print(f"optuna 4.9.0 and 5.0.0, TPESampler(seed=1): the first trial that differs is {first}")
print(f"  4.9.0: {old['default'][first - 1] if first else ''}\n  5.0.0: {new['default'][first - 1] if first else ''}")
print(f"with multivariate=True in both: {'the same' if old['said'] == new['said'] else 'others'}")
sys.exit(0 if first == 11 and old["said"] != new["said"] else 1)
PYTHON
