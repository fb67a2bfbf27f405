"""POST /act and /controllers/{name}/act: bit-identical to the library in every request form."""

import numpy as np
import pytest

from serving.client import Client
from skills_store.manifest import Action
from skills_store.runtime.library import Controller
from tests.serving.local import floats, goal_rows, problem, skill_rows, state_rows
from tests.tiny import SLICES, skills_files, skills_manifest


def test_act_on_one_row_matches_the_library(service, library):
    state = state_rows(1)
    z = skill_rows(1)
    response = service.post("/act", json={"state": state[0].tolist(), "z": z[0].tolist()})
    assert response.status_code == 200
    np.testing.assert_array_equal(floats(response.json()["targets"]), library.act(state, z)[0])


@pytest.mark.parametrize("count", [1, 2, 32, 33, 40])  # more than 32 run in a thread
def test_act_on_a_batch_matches_the_library(service, library, count):
    state = state_rows(count)
    z = skill_rows(count)
    response = service.post("/act", json={"state": state.tolist(), "z": z.tolist()})
    assert response.status_code == 200
    np.testing.assert_array_equal(floats(response.json()["targets"]), library.act(state, z))


@pytest.mark.parametrize("one", [True, False])
def test_named_parts_equal_the_flat_row(service, one):
    state, z = (x[0] if one else x for x in (state_rows(3), skill_rows(3)))
    parts = {part.name: state[..., part.start : part.stop].tolist() for part in reversed(SLICES)}
    by_parts = service.post("/act", json={"state": parts, "z": z.tolist()})
    by_row = service.post("/act", json={"state": state.tolist(), "z": z.tolist()})
    assert by_parts.status_code == 200
    assert by_parts.content == by_row.content


def test_integers_are_accepted_as_numbers(service):
    row = [0, 0, 1, 1, *[0] * 65]
    whole = service.post("/act", json={"state": row, "z": [1] + [0] * 7})
    assert (
        whole.content
        == service.post(
            "/act", json={"state": [float(x) for x in row], "z": [1.0] + [0.0] * 7}
        ).content
    )


def test_reply_names_the_version_that_computed_it(service, shared):
    version = shared.resolve("humanoid")
    body = {"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()}
    for ref in ("humanoid", "humanoid@latest", "humanoid@1", version.pinned):
        found = service.post("/act", json=body | {"skill": ref}).json()["skill"]
        assert found == {"name": "humanoid", "version": 1, "digest": version.digest}


def test_json_is_read_under_any_content_type(service):
    body = b'{"state": %s, "z": %s}' % (
        str(state_rows(1)[0].tolist()).encode(),
        str(skill_rows(1)[0].tolist()).encode(),
    )
    response = service.post(
        "/act", content=body, headers={"content-type": "application/x-www-form-urlencoded"}
    )
    assert response.status_code == 200


@pytest.mark.parametrize("count", [None, 1, 35])
def test_controller_act_returns_z_and_targets_of_its_library(service, shared, count):
    controller = Controller.open(shared, "reach")
    state = state_rows(count or 1)
    goal = goal_rows(count or 1)
    z = controller.decide(state, goal)
    targets = controller.library.act(state, z)
    body = {"state": state.tolist(), "goal": goal.tolist()}
    if count is None:
        body = {name: rows[0] for name, rows in body.items()}
        z = z[0]
        targets = targets[0]
    response = service.post("/controllers/reach@latest/act", json=body)
    assert response.status_code == 200
    found = response.json()
    np.testing.assert_array_equal(floats(found["z"]), z)
    np.testing.assert_array_equal(floats(found["targets"]), targets)
    assert found["controller"]["name"] == "reach"
    assert found["skill"]["digest"] == shared.resolve("humanoid").digest


def test_equal_seeds_give_equal_samples_and_others_differ(store, serve):
    manifest = skills_manifest()
    joints = len(manifest.character.joints)
    action = Action(offset=(0.0,) * joints, scale=(0.5,) * joints, std=(0.05,) * joints)
    store.publish(manifest.model_copy(update={"action": action}), skills_files())
    service = serve(store.root)
    state = state_rows(400)
    z = skill_rows(400)
    body = {"state": state.tolist(), "z": z.tolist()}
    mean = floats(service.post("/act", json=body).json()["targets"])
    drawn, again, other = (
        floats(service.post("/act", json=body | {"seed": n}).json()["targets"]) for n in (1, 1, 2)
    )
    np.testing.assert_array_equal(drawn, again)
    assert (drawn != other).all()
    np.testing.assert_allclose((drawn - mean).std(axis=0), 0.05, rtol=0.2)
    np.testing.assert_allclose((drawn - mean).mean(axis=0), 0, atol=0.01)


def test_seed_is_refused_for_a_policy_without_action_std(service):
    body = {"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist(), "seed": 1}
    problem(service.post("/act", json=body), 422, "not_sampled", "seed")


def test_unnormalized_z_is_normalized_and_flagged_unless_strict(service, library):
    state = state_rows(2)
    z = skill_rows(2)
    body = {"state": state.tolist(), "z": (3 * z).tolist()}
    found = service.post("/act", json=body).json()
    assert found["z_normalised"]
    np.testing.assert_allclose(floats(found["targets"]), library.act(state, z), atol=1e-6)
    problem(service.post("/act", json=body | {"strict": True}), 422, "not_on_the_sphere", "z[0]")
    near = {"state": state.tolist(), "z": (1.001 * z).tolist(), "strict": True}
    assert service.post("/act", json=near).json()["z_normalised"] is False
    problem(
        service.post("/act", json=body | {"z": [z[0].tolist(), [0.0] * 8]}),
        422,
        "not_a_direction",
        "z[1]",
    )


def test_clip_name_is_accepted_as_z(service):
    z = service.get("/skills/humanoid/latents").json()["latents"]["walk"]
    state = state_rows(3).tolist()
    named = service.post("/act", json={"state": state, "z": "walk"})
    assert (
        named.json()["targets"]
        == service.post("/act", json={"state": state, "z": [z] * 3}).json()["targets"]
    )
    response = problem(
        service.post("/act", json={"state": state, "z": "0walk"}), 404, "unknown_clip", "z"
    )
    assert "walk" in response["message"]


def test_single_z_and_goal_broadcast_over_the_batch(service):
    state = state_rows(3).tolist()
    z = skill_rows(1)[0].tolist()
    one = service.post("/act", json={"state": state, "z": z})
    assert (
        one.json()["targets"]
        == service.post("/act", json={"state": state, "z": [z] * 3}).json()["targets"]
    )
    goal = goal_rows(1)[0].tolist()
    path = "/controllers/reach/act"
    one = service.post(path, json={"state": state, "goal": goal})
    assert (
        one.json()["z"] == service.post(path, json={"state": state, "goal": [goal] * 3}).json()["z"]
    )


def test_client_accepts_a_clip_name_as_z(live):
    with Client(live.url) as client:
        z = client.latents("humanoid")["walk"]
        np.testing.assert_array_equal(
            client.act(state_rows(2), "walk"), client.act(state_rows(2), [z, z])
        )
