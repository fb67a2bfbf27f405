"""Distinguishable skills: how many of a set of z can be told apart by their motion."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pretrain.evaluation.held_skills import HeldSkills
from pretrain.evaluation.intervals import Interval, interval
from pretrain.evaluation.setup import Setup
from pretrain.motion.clip import control_steps

EXCERPT = (1.5, 3.0)  # s after the start that are compared
AXES = 16  # principal axes of the features that the discriminant uses
RIDGE = 1e-4  # added to the variance within a skill along each axis


def distinguishable_skills(setup: Setup, held: HeldSkills) -> Interval:
    """exp of the information, nats, that a linear discriminant has about the held z.

    From 1, none is distinguished, to the number of skills. n = skills; the interval is over
    them."""
    features = visible_features(setup, held)
    scores = leave_one_out(features) + math.log(len(features))
    information = interval(scores.mean(1))
    ends = [max(1.0, math.exp(end)) for end in information["interval"]]
    return {"n": len(features), "mean": max(1.0, math.exp(information["mean"])), "interval": ends}


def visible_features(setup: Setup, held: HeldSkills) -> Tensor:
    """Mean and std of the style features over EXCERPT, in units of the clips', (K, R, 2 F)."""
    first, last = (control_steps(seconds) for seconds in EXCERPT)
    frames = held.recording.frames[-held.recording.steps :][first:last]
    scaled = frames / setup.scale[: frames.shape[-1]]
    moments = torch.cat([scaled.mean(0), scaled.std(0)], -1)
    return moments.unflatten(0, (-1, held.repeats))


def leave_one_out(features: Tensor) -> Tensor:
    """Log probability of the true one of K skills, for each of its R examples, (K, R).

    `features` (K, R, D). The discriminant has Gaussian classes of one covariance on the first AXES
    principal axes; the example's own skill is estimated from its other R - 1 examples. Thus log K +
    the mean is in expectation a lower bound of the information for 64 skills; for a few, the
    covariance, which includes the example itself, raises it by up to 0.3 nats."""
    points = _principal(features)
    skills, repeats, dim = points.shape
    centered = (points - points.mean(1, keepdim=True)).flatten(0, 1)
    within = centered.T @ centered / (skills * (repeats - 1)) + RIDGE * torch.eye(dim)
    precision = torch.linalg.inv(within)
    sums = points.sum(1)
    log_probs = torch.zeros(skills, repeats)
    for skill in range(skills):
        for repeat in range(repeats):
            counts = torch.full((skills,), float(repeats))
            counts[skill] -= 1
            totals = sums.clone()
            totals[skill] -= points[skill, repeat]
            apart = points[skill, repeat] - totals / counts[:, None]
            widening = 1 + 1 / counts  # variance of the estimated mean
            distance = ((apart @ precision) * apart).sum(1) / widening
            score = -0.5 * distance - 0.5 * dim * widening.log()
            log_probs[skill, repeat] = score.log_softmax(0)[skill]
    return log_probs


def _principal(features: Tensor) -> Tensor:
    flat = features.flatten(0, 1)
    flat = flat - flat.mean(0)
    _, _, axes = torch.linalg.svd(flat, full_matrices=False)
    return (flat @ axes[:AXES].T).unflatten(0, features.shape[:2])
