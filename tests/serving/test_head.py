"""HEAD on every GET route: the same status and headers, no body."""

import http.client

import pytest

from tests.serving.process import connected, receive, request

PATHS = [  # path, status of GET
    ("/healthz", 200),
    ("/readyz", 200),
    ("/metrics", 200),
    ("/skills", 200),
    ("/skills/humanoid", 200),
    ("/skills/nobody", 404),
    ("/skills/Not%20a%20reference", 422),
    ("/skills/humanoid@1/latents", 200),
    ("/controllers", 200),
    ("/controllers/reach", 200),
    ("/controllers/humanoid", 422),
    ("/v2", 200),
    ("/v2/health/live", 200),
    ("/v2/health/ready", 200),
    ("/v2/models/humanoid", 200),
    ("/v2/models/humanoid/versions/1", 200),
    ("/v2/models/humanoid/config", 200),
    ("/v2/models/humanoid/versions/1/config", 200),
    ("/v2/models/humanoid/ready", 200),
    ("/v2/models/humanoid/versions/1/ready", 200),
    ("/v2/models/humanoid.flight/ready", 404),
    ("/openapi.json", 200),
    ("/docs", 200),
    ("/act", 405),
    ("/v2/models/humanoid/infer", 405),
    ("/nowhere", 404),
]
OWN = {"x-request-id", "date"}  # of each reply
# Their bodies depend on earlier requests or on the method.
VARYING = {"/metrics", "/act", "/v2/models/humanoid/infer", "/nowhere"}


def send(live, method, path):
    connection = http.client.HTTPConnection(*live.address, timeout=20)
    connection.request(method, path)
    response = connection.getresponse()
    headers = {k.lower(): v for k, v in response.getheaders() if k.lower() not in OWN}
    body = response.read()
    connection.close()
    return response.status, headers, body


@pytest.mark.parametrize(("path", "status"), PATHS)
def test_head_has_the_status_and_headers_of_get_and_no_body(live, path, status):
    got, headers, body = send(live, "GET", path)
    found, its_headers, nothing = send(live, "HEAD", path)
    assert (got, found, nothing) == (status, status, b"")
    assert int(headers["content-length"]) == len(body)
    if path in VARYING:
        headers["content-length"] = its_headers["content-length"]
    assert its_headers == headers


def test_every_documented_get_route_answers_head(service):
    paths = service.get("/openapi.json").json()["paths"]
    names = {"ref": "humanoid", "name": "reach", "model": "humanoid", "version": "1"}
    tried = 0
    for template, operations in paths.items():
        if "get" in operations:
            tried += 1
            assert service.head(template.format(**names)).status_code == 200, template
    assert tried == 17


def test_a_head_leaves_the_connection_usable(live):
    with connected(live.address) as connection:
        for _ in range(2):
            connection.sendall(request("/skills", b"", method="HEAD"))
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += connection.recv(1)
            assert head.startswith(b"HTTP/1.1 200")
            connection.sendall(request("/skills", b"", method="GET"))
            response = receive(connection)
            assert response.status == 200
            assert len(response.body) == int(response.headers["content-length"])


def test_the_document_has_each_route_once(service):
    operations = []
    for methods in service.get("/openapi.json").json()["paths"].values():
        assert set(methods) <= {"get", "post"}
        operations += [operation["operationId"] for operation in methods.values()]
    assert len(operations) == len(set(operations))
