"""The OpenAPI document is valid, the service accepts its examples, and the replies match it."""

import pytest
from fastapi.openapi.models import OpenAPI

from serving.wire import schemas
from serving.wire.problems import Problem
from tests.serving.local import goal_rows, state_rows


@pytest.fixture(scope="module")
def document(service):
    body = {"state": state_rows(1)[0].tolist(), "goal": goal_rows(1)[0].tolist()}
    assert (
        service.post("/controllers/reach/act", json=body).status_code == 200
    )  # examples use an opened controller
    return service.get("/openapi.json").json()


def references(part: object):
    if isinstance(part, dict):
        yield from ([part["$ref"]] if "$ref" in part else [])
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from references(inner)


def test_document_is_valid_and_all_its_references_resolve(document):
    OpenAPI.model_validate(document)
    assert document["openapi"].startswith("3.1")
    found = set(references(document))
    assert {"#/components/schemas/ActRequest", "#/components/schemas/Problem"} <= found
    for reference in found:
        *path, name = reference.removeprefix("#/").split("/")
        assert path == ["components", "schemas"]
        assert name in document["components"]["schemas"]


def test_every_example_is_accepted(service, document):
    tried = 0
    for path, methods in document["paths"].items():
        content = (
            methods.get("post", {})
            .get("requestBody", {})
            .get("content", {})
            .get("application/json", {})
        )
        for name, example in content.get("examples", {}).items():
            response = service.post(path.replace("{name}", "reach"), json=example["value"])
            assert response.status_code == 200, (path, name, response.text)
            tried += 1
    assert tried == 7


def test_every_route_documents_its_problems(document):
    for path, methods in document["paths"].items():
        own = "InferenceProblem" if path.startswith("/v2") else "Problem"
        for operation in methods.values():
            refused = {
                code: r for code, r in operation["responses"].items() if not code.startswith("2")
            }
            assert {"401", "403", "404", "413", "422", "429", "500", "503"} <= refused.keys()
            schemas_of = [
                r["content"]["application/json"]["schema"]["$ref"] for r in refused.values()
            ]
            assert set(schemas_of) == {f"#/components/schemas/{own}"}


def test_replies_are_as_documented(service, document):
    replies = {
        "/act": schemas.ActResponse,
        "/encode": schemas.EncodeResponse,
        "/controllers/{name}/act": schemas.DecideResponse,
        "/interpolate": schemas.InterpolateResponse,
    }
    for path, model in replies.items():
        examples = document["paths"][path]["post"]["requestBody"]["content"]["application/json"][
            "examples"
        ]
        for example in examples.values():
            response = service.post(path.replace("{name}", "reach"), json=example["value"])
            model.model_validate_json(response.content, strict=True)
    Problem.model_validate_json(service.get("/nowhere").content, strict=True)


def test_document_of_a_service_without_skills_has_no_examples(tmp_path, serve):
    document = serve(tmp_path).get("/openapi.json").json()
    OpenAPI.model_validate(document)
    assert (
        "examples"
        not in document["paths"]["/act"]["post"]["requestBody"]["content"]["application/json"]
    )
