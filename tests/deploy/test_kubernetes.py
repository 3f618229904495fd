"""The Kubernetes files: valid as they stand, and as kustomize puts them together."""

import copy
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rig.image import DOCKERFILE, steps
from rig.programs import path_of
from rig.schemas import DEPLOY, documents, kubernetes_problems
from sealgate.config import Config, load_config

FOLDER = DEPLOY / "kubernetes"
FILES = [*(FOLDER / "sidecar").glob("[nps]*.yaml"), *(FOLDER / "example").glob("[nb]*.yaml")]
[PATCH] = documents((FOLDER / "sidecar/sidecar.yaml").read_text())
POD: dict[str, Any] = PATCH["spec"]["template"]["spec"]
GATEWAY: dict[str, Any] = POD["initContainers"][-1]
[USER] = [step.text for step in steps(DOCKERFILE.read_text()) if step.name == "USER"]
UID, GID = map(int, USER.split(":"))


def as_object(document: dict[str, Any]) -> dict[str, Any]:
    """Return an object that is whole: a patch leaves out what its target has."""
    if document is PATCH:
        document = copy.deepcopy(document)
        document["spec"]["selector"] = {}
        document["spec"]["template"]["spec"]["containers"] = []
    return document


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_file_is_as_kubernetes_says(file: Path) -> None:
    [document] = documents(file.read_text())
    assert kubernetes_problems(as_object(PATCH if document == PATCH else document)) == []


def mounted(pod: dict[str, Any]) -> set[str]:
    parts = [*pod.get("initContainers", []), *pod["containers"]]
    return {mount["name"] for part in parts for mount in part["volumeMounts"]}


@pytest.mark.parametrize("part", POD["initContainers"], ids=lambda part: part["name"])
def test_the_containers_are_restricted_and_the_image_s_user(part: dict[str, Any]) -> None:
    context = part["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"], POD["securityContext"]["fsGroup"]) == (UID, GID, GID)
    assert context["runAsNonRoot"]
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}


def test_the_gateway_is_a_sidecar_that_the_bots_wait_for() -> None:
    assert GATEWAY["restartPolicy"] == "Always"
    assert (
        GATEWAY["startupProbe"]["httpGet"]["path"]
        == GATEWAY["livenessProbe"]["httpGet"]["path"]
        == "/-/healthy"
    )
    assert GATEWAY["readinessProbe"]["httpGet"]["path"] == "/-/ready"
    names = {port["name"] for port in GATEWAY["ports"]}
    assert all(len(name) <= 15 for name in names)  # the most that a port's name may have
    probes = [
        GATEWAY[kind]["httpGet"]["port"] for kind in ("startupProbe", "readinessProbe", "livenessProbe")
    ]
    assert set(probes) == names


def test_the_monitor_and_the_policy_mean_the_gateway() -> None:
    labels = PATCH["spec"]["template"]["metadata"]["labels"]
    [port] = GATEWAY["ports"]
    [monitor] = documents((FOLDER / "sidecar/podmonitor.yaml").read_text())
    [policy] = documents((FOLDER / "sidecar/networkpolicy.yaml").read_text())
    assert (
        monitor["spec"]["selector"]["matchLabels"] == policy["spec"]["podSelector"]["matchLabels"] == labels
    )
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] == port["name"]
    [ingress] = policy["spec"]["ingress"]
    assert [allowed["port"] for allowed in ingress["ports"]] == [port["containerPort"]]


def test_names_are_asked_of_every_kind_of_cluster_dns() -> None:
    """Of pods of kube-dns, of the node's own cache, which is no pod's address, and of OpenShift's pods."""
    [policy] = documents((FOLDER / "sidecar/networkpolicy.yaml").read_text())
    names, _ = policy["spec"]["egress"]
    spaces = {
        peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for peer in names["to"]
        if "namespaceSelector" in peer
    }
    assert spaces == {"kube-system", "openshift-dns"}
    assert {"ipBlock": {"cidr": "169.254.20.10/32"}} in names["to"]
    assert {(one["protocol"], one["port"]) for one in names["ports"]} == {
        (protocol, port) for protocol in ("UDP", "TCP") for port in (53, 5353)
    }


def test_an_operator_that_looks_for_its_release_finds_the_monitor() -> None:
    [monitor] = documents((FOLDER / "sidecar/podmonitor.yaml").read_text())
    assert "release" in monitor["metadata"]["labels"]


def test_a_second_start_finds_the_journal_as_the_gateway_left_it() -> None:
    """The kubelet would else add write permission for the group, with which the gateway refuses it."""
    assert POD["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    text = (FOLDER / "example/sealgate.toml").read_text()
    (tmp_path / "sealgate.toml").write_text(text.replace("/var/lib/sealgate/gateway", str(tmp_path)))
    return load_config(tmp_path / "sealgate.toml", environ={})


def test_the_configuration_fits_the_pod(config: Config) -> None:
    assert config.admin.tcp is not None
    assert config.listen.tcp is not None
    assert [config.admin.tcp.port] == [port["containerPort"] for port in GATEWAY["ports"]]
    assert not config.admin.tcp.is_loopback
    assert config.listen.tcp.is_loopback
    places = {mount["name"]: mount["mountPath"] for mount in GATEWAY["volumeMounts"]}
    assert config.keys["main"].secret == f"file:{places['sealgate-secrets']}/main"
    folder = POD["initContainers"][0]["command"][-1]
    assert f'file = "{folder}/journal.db"' in (FOLDER / "example/sealgate.toml").read_text()
    drains = config.listen.drain + config.limits.max_wait + config.upstream.total_timeout
    assert POD["terminationGracePeriodSeconds"] > drains


def kustomized(folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [path_of("kubectl"), "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return documents(done.stdout)


def test_with_two_exchanges_each_key_has_a_file_of_the_secret(tmp_path: Path) -> None:
    text = (FOLDER / "exchanges/sealgate.toml").read_text()
    (tmp_path / "sealgate.toml").write_text(text.replace("/var/lib/sealgate/gateway", str(tmp_path)))
    several = load_config(tmp_path / "sealgate.toml", environ={})
    places = {mount["name"]: mount["mountPath"] for mount in GATEWAY["volumeMounts"]}
    assert {name: key.secret for name, key in several.keys.items()} == {
        name: f"file:{places['sealgate-secrets']}/{name}" for name in several.served
    }
    assert str(several.admin.tcp) == "0.0.0.0:8788"


@pytest.mark.needs("kubectl")
def test_the_example_with_two_exchanges_has_its_own_configuration_and_call() -> None:
    objects = kustomized(FOLDER / "exchanges")
    assert [problem for found in objects for problem in kubernetes_problems(found)] == []
    [text] = [found["data"]["sealgate.toml"] for found in objects if "sealgate.toml" in found.get("data", {})]
    assert text == (FOLDER / "exchanges/sealgate.toml").read_text()
    [bot] = [found for found in objects if found["kind"] == "StatefulSet"]
    pod = bot["spec"]["template"]["spec"]
    assert [part["name"] for part in pod["initContainers"]] == ["sealgate-folder", "sealgate"]
    maps = {found["metadata"]["name"] for found in objects if found["kind"] == "ConfigMap"}
    assert maps == {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume}
    [called] = pod["containers"][0]["env"]
    assert called["value"].split("/")[1] in tomllib.loads(text)["exchanges"]


@pytest.mark.needs("kubectl")
def test_the_example_as_a_whole() -> None:
    objects = kustomized(FOLDER / "example")
    assert [problem for found in objects for problem in kubernetes_problems(found)] == []
    by_kind = {found["kind"]: found for found in objects}
    bot = by_kind["StatefulSet"]
    pod = bot["spec"]["template"]["spec"]
    assert [part["name"] for part in pod["initContainers"]] == ["sealgate-folder", "sealgate"]
    assert {part["image"] for part in pod["initContainers"]} == {"registry.example.com/sealgate:1"}
    assert mounted(pod) == {volume["name"] for volume in pod["volumes"]}
    maps = {found["metadata"]["name"] for found in objects if found["kind"] == "ConfigMap"}
    assert maps == {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume}
    assert bot["spec"]["template"]["metadata"]["labels"] == {"app": "bot", "sealgate": "sidecar"}
    [claim] = bot["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] in mounted(pod)  # it takes the place of the emptyDir
    assert {found["metadata"].get("namespace", "bots") for found in objects} == {"bots"}


# In block style: kustomize cannot patch a list that stands in brackets.
OTHER = """\
apiVersion: {version}
kind: {kind}
metadata:
  name: other
  labels:
    sealgate: {label}
spec:
  {selector}
  template:
    metadata:
      labels:
        app: other
    spec:
      {restart}
      initContainers:
        - name: migrate
          image: x
      containers:
        - name: bot
          image: x
"""
SELECTOR = "selector: {matchLabels: {app: other}}"


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize(
    ("kind", "version", "label", "names"),
    [
        ("Deployment", "apps/v1", "sidecar", ["sealgate-folder", "sealgate", "migrate"]),
        ("Job", "batch/v1", "sidecar", ["sealgate-folder", "sealgate", "migrate"]),
        ("Deployment", "apps/v1", "none", ["migrate"]),
    ],
)
def test_the_component_in_other_kinds(
    tmp_path: Path, kind: str, version: str, label: str, names: list[str]
) -> None:
    """It comes first, so that other init containers have it, and leaves alone who did not ask."""
    is_job = kind == "Job"
    text = OTHER.format(
        kind=kind,
        version=version,
        label=label,
        selector="" if is_job else SELECTOR,
        restart="restartPolicy: Never" if is_job else "",
    )
    (tmp_path / "other.yaml").write_text(text)
    (tmp_path / "sidecar").mkdir()
    for file in (FOLDER / "sidecar").iterdir():
        (tmp_path / "sidecar" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "kustomization.yaml").write_text("resources: [other.yaml]\ncomponents: [sidecar]\n")
    [other] = [found for found in kustomized(tmp_path) if found["metadata"]["name"] == "other"]
    assert kubernetes_problems(other) == []
    assert [part["name"] for part in other["spec"]["template"]["spec"]["initContainers"]] == names
