#!/usr/bin/env bash
# rsl-rl-lib 5.5.1, torch 2.13.0: to make one Gaussian policy turns off the checks of every distribution in the process.
#
# torch.distributions check their arguments, so that a negative or NaN parameter raises an error. rsl_rl calls
# Normal.set_default_validate_args(False) when it makes a GaussianDistribution. One would guess that the call, made on
# Normal, is about Normal: in torch it is a static method that sets the base class Distribution. So from then on a
# Categorical of other code in the same program takes a negative probability and gives infinite ones, a Beta gives NaN
# as the log probability of what is outside of its support, and a test that expects the error passes or fails by what
# ran before it. To import rsl_rl does not do so, the first policy does, and nothing in rsl_rl turns the checks on
# again. In the source: rsl_rl/modules/distribution.py and torch/distributions/distribution.py.
#
# Seen (Python 3.11, Linux):
#                                                  before       after
#   Normal(NaN, 1)                                 ValueError   taken
#   Categorical(probs=(0.5, -0.5)), largest        ValueError   inf
#   Beta(2, 2).log_prob(1.5)                       ValueError   nan
#   the Categorical with validate_args=True        ValueError   ValueError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'rsl-rl-lib==5.5.1' 'tensordict==0.15.3' 'torch==2.13.0' 'numpy==2.4.6'

cat > checks.py <<'PY'
import torch
from rsl_rl.modules.distribution import GaussianDistribution
from torch.distributions import Beta, Categorical, Normal

PROBABILITIES = torch.tensor([0.5, -0.5])
CASES = {
    "Normal(NaN, 1)": lambda: Normal(float("nan"), 1.0) and "taken",
    "Categorical": lambda: Categorical(probs=PROBABILITIES).probs.max().item(),
    "Beta(2, 2).log_prob(1.5)": lambda: Beta(2.0, 2.0).log_prob(torch.tensor(1.5)).item(),
    "validate_args=True": lambda: Categorical(probs=PROBABILITIES, validate_args=True).probs.max().item(),
}


def outcomes():
    """What each case gives, or the name of its error."""
    found = []
    for case in CASES.values():
        try:
            found.append(str(case()))
        except Exception as error:
            found.append(type(error).__name__)
    return found


before = outcomes()
GaussianDistribution(output_dim=3)
for name, *values in zip(CASES, before, outcomes(), strict=True):
    print(f"{name}:", *values)
PY
env/bin/python checks.py | tee seen
diff seen - <<'EXPECTED'
Normal(NaN, 1): ValueError taken
Categorical: ValueError inf
Beta(2, 2).log_prob(1.5): ValueError nan
validate_args=True: ValueError ValueError
EXPECTED
