"""Damaged checkpoints and logs are refused, and so are settings that cannot be published."""

from __future__ import annotations

import re

import pytest
import torch

from pretrain.config import PretrainConfig
from pretrain.overrides import ConfigError, load_config
from pretrain.rl import checkpoint
from pretrain.rl.run_folder import Log, read_log


def test_checkpoint_with_a_flipped_bit_is_refused(tmp_path):
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, {"x": torch.arange(4096.0)})
    assert torch.equal(checkpoint.load(path)["x"], torch.arange(4096.0))
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"checkpoint\.pt is no checkpoint"):
        checkpoint.load(path)


def test_invalid_log_row_is_refused_with_its_line_number(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for row in ('{"iteration": 2, garb}', "{}"):
        path.write_text(f'{{"iteration": 1}}\n{row}\n')
        for read in (lambda: read_log(tmp_path), lambda: Log(tmp_path, 2)):
            with pytest.raises(ValueError, match=r"metrics\.jsonl, line 2"):
                read()


@pytest.mark.parametrize("wrong", ["ppo.hidden=[255]", "eval.episodes=1"])
def test_unpublishable_setting_is_refused_at_load(wrong):
    with pytest.raises(ConfigError, match=re.escape(wrong.split("=")[0])):
        load_config(PretrainConfig, "pretrain.conf", [wrong])
