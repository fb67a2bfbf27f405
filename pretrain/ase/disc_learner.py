"""The discriminator's learner, by the keys of `disc`."""

from __future__ import annotations

from pretrain.ase.discriminator import DiscLossWeights, Discriminator, disc_loss
from pretrain.ase.reference_windows import ReferenceWindows
from pretrain.ase_config import DiscConfig
from pretrain.rl.adam import Adam
from pretrain.rl.learner import Learner
from pretrain.rl.replay import Replay


def make_disc_learner(
    disc: DiscConfig, discriminator: Discriminator, demos: ReferenceWindows, replay: Replay
) -> Learner:
    weights = DiscLossWeights(
        loss=disc.disc_loss_weight,
        grad_penalty=disc.disc_grad_penalty,
        logit_reg=disc.disc_logit_reg,
        weight_decay=disc.disc_weight_decay,
    )
    replay_share = disc.disc_replay_samples / disc.rows
    loss = disc_loss(discriminator, demos, replay, weights, replay_share)
    return Learner(
        "disc",
        ("window", "z_clip"),
        loss,
        Adam(discriminator.parameters(), disc.lr),
        epochs=1,
        minibatch=disc.minibatch,
        max_rows=disc.rows,
    )
