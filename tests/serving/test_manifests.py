"""The Kubernetes manifests agree with each other and name existing routes and settings."""

from pathlib import Path

import pytest
import yaml

from serving.settings import Settings

MANIFESTS = sorted((Path(__file__).parents[2] / "docker" / "k8s").glob("*.yaml"))


@pytest.fixture(scope="module")
def found():
    documents = [one for file in MANIFESTS for one in yaml.safe_load_all(file.read_text())]
    return {one["kind"]: one for one in documents}


def test_manifests_have_deployment_service_and_autoscaler(found):
    assert found.keys() == {
        "Deployment",
        "Service",
        "HorizontalPodAutoscaler",
        "PodDisruptionBudget",
    }
    assert (
        found["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"]
        == found["Deployment"]["metadata"]["name"]
    )
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"].items() <= labels.items()


def test_deployment_uses_existing_probe_routes_and_settings(found, service):
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert service.get(container[probe]["httpGet"]["path"]).status_code == 200
    known = {f"REPERTOIRE_{name.upper()}" for name in Settings.model_fields}
    assert {one["name"] for one in container["env"]} <= known


def test_a_pod_may_drain_before_it_is_killed(found):
    pod = found["Deployment"]["spec"]["template"]["spec"]
    drain = next(
        float(one["value"])
        for one in pod["containers"][0]["env"]
        if one["name"] == "REPERTOIRE_DRAIN"
    )
    assert pod["terminationGracePeriodSeconds"] > drain + 8  # uvicorn's own timeout
