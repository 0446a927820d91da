"""What is in deploy/ agrees with the code: metrics, settings, ports, commands; and with itself.

Lint and schemas are the business of `make check-deploy`.
"""

import itertools
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml
from prometheus_client.parser import text_string_to_metric_families

from pathsieve.cli import app
from server.cluster.observation import ClusterObservation
from server.exposure import check_exposure
from server.http_port import application
from server.metrics import Metrics, Observation
from server.readiness import Readiness
from server.rpc.listener import LIVENESS
from server.settings import Settings
from server.settings_sources import load_settings, variable_of

REPOSITORY = Path(__file__).resolve().parent.parent
DEPLOY = REPOSITORY / "deploy"
CHART = DEPLOY / "helm/pathsieve"
MANIFESTS = DEPLOY / "kubernetes/pathsieve.yaml"
TEXTS = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
OPERATIONS = (REPOSITORY / "docs/operations.md").read_text()
HELM = Path(sys.executable).parent / "helm"
OF_PROMETHEUS = {"job", "instance", "le"}
OUTSIDE = {"up", "ALERTS"}
PROBES = ("startup", "liveness", "readiness")

needs_helm = pytest.mark.skipif(not HELM.exists(), reason="no helm here: its wheel is for Linux on x86-64")


def relative(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def settings_keys() -> set[str]:
    return {key for key, _, _ in Settings().rows()}


# -- metrics ---------------------------------------------------------------------------------------


def exposed() -> dict[str, dict[str, set[str]]]:
    """The labels of each sample that a busy replica tells, and their values."""
    metrics = Metrics("1.0")
    replica = ClusterObservation("connected", {"matching": 86, "notifying": 85}, 1, {"b": 1.5}, 7)
    outcomes = dict.fromkeys(("accepted", "refused", "unavailable"), 1)
    kinds, pushes = {"xpath": 1, "boolean": 1}, {"done": 1, "failed": 1}
    metrics.observe = lambda: Observation(outcomes, subscriptions=kinds, pushes=pushes, cluster=replica)
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            labels = found.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    return found


EXPOSED = exposed()
SELECTOR = re.compile(r"\b([a-z]\w*)\s*\{([^}]*)\}|\b((?:pathsieve|process)_\w+)")
MATCHER = re.compile(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"')


def unknown(expression: str) -> list[str]:
    """What an expression names that no server tells: metrics, labels, values of labels."""
    problems, usable = [], set(OF_PROMETHEUS)
    for name, matchers, bare in SELECTOR.findall(expression):
        metric = name or bare
        if metric in OUTSIDE:
            continue
        if metric not in EXPOSED:
            problems.append(metric)
            continue
        labels = EXPOSED[metric]
        usable |= set(labels)
        for label, operator, value in MATCHER.findall(matchers):
            if label not in OF_PROMETHEUS and (label not in labels or (operator == "=" and value not in labels[label])):
                problems.append(f'{metric}{{{label}{operator}"{value}"}}')
    for group in re.findall(r"\bby \(([^)]*)\)", expression):
        problems += [label for label in re.split(r"\s*,\s*", group) if label not in usable]
    return problems


EXPRESSIONS = {
    "what_is_there": ('sum by (kind) (pathsieve_cluster_tokens_owned{job="x"}) < 256', []),
    "a_counter_without_its_suffix": ("rate(pathsieve_matches[5m])", ["pathsieve_matches"]),
    "a_metric_that_is_not": ("pathsieve_nothing > 1", ["pathsieve_nothing"]),
    "a_label_that_it_has_not": ('pathsieve_ready{kind="a"}', ['pathsieve_ready{kind="a"}']),
    "a_value_that_it_never_has": (
        'pathsieve_documents_total{outcome="lost"}',
        ['pathsieve_documents_total{outcome="lost"}'],
    ),
    "grouped_by_what_it_has_not": ("sum by (peer) (pathsieve_ready)", ["peer"]),
    "of_prometheus_itself": ('up{job="pathsieve"} == 0', []),
}


@pytest.mark.parametrize("expression, problems", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_the_check_of_expressions_finds_what_it_should(expression: str, problems: list[str]) -> None:
    assert unknown(expression) == problems


DASHBOARD = json.loads((DEPLOY / "grafana/pathsieve.json").read_text())
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"] if panel["type"] != "row"}
ALERTS = {
    rule["alert"]: rule
    for group in yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
}


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_asks_for_what_there_is_and_says_what_it_shows(title: str) -> None:
    panel = PANELS[title]
    assert panel["description"]
    assert panel["datasource"]["uid"] == "${datasource}"
    assert panel["targets"]
    assert [unknown(target["expr"]) for target in panel["targets"]] == [[] for _ in panel["targets"]]
    mentioned = set(re.findall(r"PathSieve[A-Z]\w+", panel["description"]))
    assert mentioned <= set(ALERTS)


def test_the_panels_lie_side_by_side() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    cells = [cell for panel in DASHBOARD["panels"] for cell in cells_of(panel["gridPos"])]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def cells_of(place: dict[str, int]) -> Iterator[tuple[int, int]]:
    return itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"]))


def test_the_dashboard_finds_its_clusters_and_replicas_by_what_there_is() -> None:
    asked = {one["name"]: one.get("definition", "") for one in DASHBOARD["templating"]["list"]}
    assert asked.keys() == {"datasource", "job", "instance"}
    assert [unknown(text) for text in asked.values()] == [[], [], []]


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_asks_for_what_there_is_and_leads_to_its_chapter(name: str) -> None:
    rule = ALERTS[name]
    assert unknown(rule["expr"]) == []
    path, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert (REPOSITORY / path).is_file()
    assert anchor in anchors(OPERATIONS)
    assert rule["labels"]["severity"] in ("critical", "warning")


def anchors(markdown: str) -> set[str]:
    """As they are made of headings."""
    headings = re.findall(r"^#+ (.+)$", markdown, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_each_alert_is_tried_both_ways_and_no_chapter_is_left_over() -> None:
    tried = re.findall(r'alertname="(\w+)"', (DEPLOY / "prometheus/alerts_test.yml").read_text())
    assert sorted(tried) == sorted(ALERTS)
    assert re.findall(r"^### (PathSieve\w+)$", OPERATIONS, re.MULTILINE) == list(ALERTS)


def test_every_metric_is_explained() -> None:
    families = {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in EXPOSED if name.startswith("pathsieve_")}
    explained = set(re.findall(r"^\| `(pathsieve_\w+?)(?:_total)?[`{]", OPERATIONS, re.MULTILINE))
    assert explained == {family for family in families if not family.endswith("_created")}


# -- settings, ports, commands ---------------------------------------------------------------------


@pytest.mark.parametrize("path", [*TEXTS, REPOSITORY / "docs/operations.md"], ids=relative)
def test_every_variable_is_a_setting(path: Path) -> None:
    named = set(re.findall(r"\bPATHSIEVE_[A-Z_]+[A-Z]", path.read_text()))
    known = {variable_of(key) for key in settings_keys()} | {"PATHSIEVE_ADDRESS", "PATHSIEVE_TOKEN"}
    assert named <= known


@pytest.mark.parametrize("path", [*TEXTS, REPOSITORY / "docs/operations.md"], ids=relative)
def test_every_dotted_name_of_a_section_is_a_setting(path: Path) -> None:
    sections = {key.partition(".")[0] for key in settings_keys() if "." in key}
    text = re.sub(r"\.Values\.[\w.]+|https?://\S+", "", path.read_text())
    if path.suffix in (".yaml", ".tpl") and CHART in path.parents:
        text = "\n".join(line for line in text.splitlines() if line.lstrip().startswith("#"))
    named = set(re.findall(rf"(?<![\w./$-])(?:{'|'.join(sections)})\.[a-z_]+\b(?![./-])", text))
    values = {".".join(path) for path in value_paths(yaml.safe_load((CHART / "values.yaml").read_text()))}
    files = {name for name in named if name.endswith((".toml", ".yml", ".yaml", ".md"))}
    assert named - files - values <= settings_keys()


def environment_of_manifests() -> dict[str, str]:
    given = {"PATHSIEVE_STORE__URL": "postgresql://a:b@c/d", "PATHSIEVE_CLUSTER__SECRET": "s"}
    given |= {"PATHSIEVE_MATCHING__THREADS": "2", "POD_NAME": "pathsieve-0"}
    listed = container()["env"]
    return {one["name"]: given.get(one["name"]) or one["value"].replace("$(POD_NAME)", "pathsieve-0") for one in listed}


def environment_of_compose() -> dict[str, str]:
    environment = compose()["pathsieve-1"]["environment"]
    return {name: re.sub(r"\$\{[^}]*\}", "x", value) for name, value in environment.items()} | {
        "PATHSIEVE_LISTEN__HOST": "0.0.0.0"  # of the image
    }


def environment_of_the_unit() -> dict[str, str]:
    lines = (DEPLOY / "systemd/pathsieve.env").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return given | {"PATHSIEVE_SECURITY__TOKENS": "/run/credentials/tokens.toml"}


ENVIRONMENTS = {
    "kubernetes": environment_of_manifests,
    "compose": environment_of_compose,
    "systemd": environment_of_the_unit,
}


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_a_server_accepts_the_environment_it_is_given(
    environment: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    check_exposure(settings)
    assert settings.cluster.advertise.partition(":")[0].split(".")[0] == settings.cluster.replica
    assert settings.cluster.advertise.endswith(f":{settings.listen.port}")
    assert settings.drain_seconds == 30


def test_without_tokens_the_unit_would_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in environment_of_the_unit().items():
        if name != "PATHSIEVE_SECURITY__TOKENS":
            monkeypatch.setenv(name, value)
    with pytest.raises(Exception, match=r"set security\.tokens"):
        check_exposure(load_settings())


def test_ports_are_those_of_the_settings() -> None:
    settings = Settings()
    ports = {"grpc": settings.listen.port, "http": settings.http.port}
    assert {port["name"]: port["containerPort"] for port in container()["ports"]} == ports
    for service in of_kind("Service"):
        assert all(port["port"] == ports[port["targetPort"]] for port in service["spec"]["ports"])
    (exposed_ports,) = re.findall(r"^EXPOSE (.+)$", dockerfile(), re.MULTILINE)
    assert sorted(map(int, exposed_ports.split())) == sorted(ports.values())
    for name, service in compose().items():
        if name.startswith("pathsieve"):
            listens = int(service["environment"]["PATHSIEVE_LISTEN__PORT"])
            assert {int(port.rpartition(":")[2]) for port in service["ports"]} == {listens, settings.http.port}
            assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_probes_ask_for_health_by_grpc() -> None:
    alive = {"port": Settings().listen.port, "service": LIVENESS}
    assert [container()[f"{name}Probe"]["grpc"] for name in PROBES] == [alive, alive, {"port": alive["port"]}]


@needs_helm
def test_probes_ask_for_pages_that_there_are_where_grpc_has_tls() -> None:
    pages = {route.path for route in application(Readiness(), Metrics("1.0"), dict).routes}
    secured = container(rendered("--set", "security.tlsSecretName=tls"))
    probes = [secured[f"{name}Probe"]["httpGet"] for name in PROBES]
    assert [probe["path"] for probe in probes] == ["/healthz", "/healthz", "/readyz"]
    assert {probe["path"] for probe in probes} <= pages
    assert {probe["port"] for probe in probes} == {"http"}


def test_the_image_asks_for_a_page_that_there_is() -> None:
    pages = {route.path for route in application(Readiness(), Metrics("1.0"), dict).routes}
    asked = re.search(r"HEALTHCHECK.*?http://127\.0\.0\.1:(\d+)(/\w+)", dockerfile(), re.DOTALL)
    assert asked is not None
    assert (int(asked[1]), asked[2] in pages) == (Settings().http.port, True)


OURS = "serve|sub|publish|attach|cluster|top|doctor|dev-cluster"
COMMANDS = re.compile(rf"^(?:.*?[\s`/(])?pathsieve ((?:{OURS})\b[^`\n|#]*)", re.MULTILINE)


def wrong_command(line: str) -> str:
    """What is wrong with a command line; empty if nothing is."""
    command: Any = typer.main.get_command(app)
    for word in shlex.split(line):
        if hasattr(command, "commands"):
            if word not in command.commands:
                return f"no command {word}"
            command = command.commands[word]
        elif word.startswith("--"):
            flag = word.partition("=")[0]
            if flag not in {option for parameter in command.params for option in parameter.opts}:
                return f"no option {flag}"
    return "" if not hasattr(command, "commands") else "a command is missing"


LINES = {
    "serve --port 7443": "",
    "cluster drain replica-2 --until-done": "",
    "cluster drain replica-2 --at-once": "no option --at-once",
    "cluster heal": "no command heal",
    "cluster": "a command is missing",
}


@pytest.mark.parametrize("line, problem", LINES.items())
def test_the_check_of_commands_finds_what_it_should(line: str, problem: str) -> None:
    assert wrong_command(line) == problem


@pytest.mark.parametrize("path", [*TEXTS, REPOSITORY / "docs/operations.md"], ids=relative)
def test_every_command_can_be_given(path: Path) -> None:
    lines = COMMANDS.findall(path.read_text())
    assert {line: wrong_command(line) for line in lines if wrong_command(line)} == {}


def test_what_starts_is_the_server() -> None:
    assert wrong_command("serve") == ""
    assert re.findall(r"^(?:ENTRYPOINT|CMD) (.+)$", dockerfile(), re.MULTILINE) == ['["pathsieve"]', '["serve"]']
    assert unit()["ExecStart"] == ["/opt/pathsieve/bin/pathsieve serve"]
    assert not {"command", "args"} & container().keys()


# -- the image -------------------------------------------------------------------------------------


def dockerfile() -> str:
    return (DEPLOY / "Dockerfile").read_text()


def test_what_the_wheel_is_built_from_reaches_the_build() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    packages = {package.partition(".")[0] for package in project["tool"]["setuptools"]["packages"]}
    needed = packages | {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    lines = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in lines if line.startswith("!")} == needed
    assert "*" in lines


def test_everybody_runs_as_the_user_of_the_image() -> None:
    (user,) = re.findall(r"^USER (\d+):\1$", dockerfile(), re.MULTILINE)
    pod = pod_spec()["securityContext"]
    assert {pod["runAsUser"], pod["runAsGroup"], pod["fsGroup"]} == {int(user)}
    assert {one["user"] for name, one in compose().items() if name.startswith("pathsieve")} == {f"{user}:{user}"}


def test_what_is_written_is_on_volumes() -> None:
    (listed,) = re.findall(r"^VOLUME (.+)$", dockerfile(), re.MULTILINE)
    (cache,) = re.findall(r"NUMBA_CACHE_DIR=(\S+)", dockerfile())
    (folder,) = re.findall(r"^WORKDIR (/var/\S+)$", dockerfile(), re.MULTILINE)
    mounts = {mount["mountPath"] for mount in container()["volumeMounts"] if not mount.get("readOnly")}
    assert {cache, folder} == set(json.loads(listed))
    assert mounts == {cache, folder, "/tmp"}
    assert cache == re.search(r"NUMBA_CACHE_DIR=(\S+)", " ".join(unit()["Environment"]))[1]  # type: ignore[index]


# -- compose, the unit -----------------------------------------------------------------------------


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "systemd/pathsieve.service").read_text().splitlines():
        name, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_replicas_of_compose_are_alike_but_for_their_names_and_ports() -> None:
    replicas = {name: one for name, one in compose().items() if name.startswith("pathsieve")}
    assert len(replicas) == 3
    own = {"PATHSIEVE_CLUSTER__REPLICA", "PATHSIEVE_CLUSTER__ADVERTISE", "PATHSIEVE_LISTEN__PORT"}
    for name, one in replicas.items():
        environment = one["environment"]
        assert environment["PATHSIEVE_CLUSTER__REPLICA"] == name
        assert environment["PATHSIEVE_CLUSTER__ADVERTISE"] == f"{name}:{environment['PATHSIEVE_LISTEN__PORT']}"
        assert one["read_only"] is True
        assert one["cap_drop"] == ["ALL"]
        assert {condition["condition"] for condition in one["depends_on"].values()} == {"service_healthy"}
    shared = [{key: value for key, value in one["environment"].items() if key not in own} for one in replicas.values()]
    assert shared[0] == shared[1] == shared[2]
    variables = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text()))
    assert set(re.findall(r"^(\w+)=", (DEPLOY / "compose.env.example").read_text(), re.MULTILINE)) == variables


STOPPING = 5
"""Seconds beyond `drain_seconds` that closing ports and store may take: one for gRPC, one for HTTP, and some."""


def test_who_stops_a_server_waits_longer_than_it_drains() -> None:
    environment = {one["name"]: one.get("value") for one in container()["env"]}
    before = int(container()["lifecycle"]["preStop"]["exec"]["command"][1])
    least = int(environment["PATHSIEVE_DRAIN_SECONDS"]) + STOPPING
    assert pod_spec()["terminationGracePeriodSeconds"] >= before + least
    assert int(unit()["TimeoutStopSec"][0]) >= least
    for name, one in compose().items():
        if name.startswith("pathsieve"):
            least = int(one["environment"]["PATHSIEVE_DRAIN_SECONDS"]) + STOPPING
            assert int(one["stop_grace_period"].removesuffix("s")) >= least


# -- Kubernetes ------------------------------------------------------------------------------------


def rendered(*options: str, text: str = "") -> list[dict[str, Any]]:
    """The objects of the chart with some values."""
    return [one for one in yaml.safe_load_all(text or made(*options)) if one]


def made(*options: str) -> str:
    outcome = helm(*options)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def helm(*options: str) -> subprocess.CompletedProcess[str]:
    command = [str(HELM), "template", "pathsieve", str(CHART), "--namespace", "pathsieve", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def of_kind(kind: str, objects: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    found = objects if objects is not None else rendered(text=MANIFESTS.read_text())
    return [one for one in found if one["kind"] == kind]


def pod_spec(objects: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    (replicas,) = of_kind("StatefulSet", objects)
    return replicas["spec"]["template"]["spec"]


def container(objects: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    (one,) = pod_spec(objects)["containers"]
    return one


def violations(pod: dict[str, Any]) -> list[str]:
    """What the standard "restricted" of Kubernetes would refuse in a pod, and a root that can be written."""
    whole, problems = pod.get("securityContext", {}), []
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        problems += [key] if pod.get(key) else []
    allowed = {"name", "emptyDir", "configMap", "secret", "projected", "downwardAPI", "persistentVolumeClaim"}
    problems += [f"volume {one['name']}" for one in pod.get("volumes", []) if not one.keys() <= allowed]
    for one in [*pod.get("initContainers", []), *pod["containers"]]:
        own = one.get("securityContext", {})
        both = whole | own
        expected = {
            "runAsNonRoot": both.get("runAsNonRoot") is True and both.get("runAsUser") != 0,
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "readOnlyRootFilesystem": own.get("readOnlyRootFilesystem") is True,
            "privileged": not own.get("privileged"),
            "capabilities": own.get("capabilities") == {"drop": ["ALL"]},
            "seccompProfile": both.get("seccompProfile", {}).get("type") == "RuntimeDefault",
            "hostPort": not any("hostPort" in port for port in one.get("ports", [])),
        }
        problems += [key for key, is_well in expected.items() if not is_well]
    return problems


def test_the_pods_are_restricted() -> None:
    assert violations(pod_spec()) == []
    assert pod_spec()["automountServiceAccountToken"] is False


def test_the_check_of_pods_finds_what_it_should() -> None:
    pod = json.loads(json.dumps(pod_spec()))
    pod["hostNetwork"] = True
    pod["volumes"][0] = {"name": "state", "hostPath": {"path": "/"}}
    pod["securityContext"]["runAsUser"] = 0
    del pod["securityContext"]["seccompProfile"]
    pod["containers"][0]["securityContext"] = {"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}
    assert violations(pod) == [
        *("hostNetwork", "volume state", "runAsNonRoot", "allowPrivilegeEscalation", "readOnlyRootFilesystem"),
        *("capabilities", "seccompProfile"),
    ]


def test_secrets_come_from_secrets() -> None:
    by_name = {one["name"]: one for one in container()["env"]}
    for variable in ("PATHSIEVE_STORE__URL", "PATHSIEVE_CLUSTER__SECRET"):
        assert by_name[variable]["valueFrom"].keys() == {"secretKeyRef"}
    volumes = {volume["name"]: volume for volume in pod_spec()["volumes"]}
    assert volumes["tokens"]["secret"]["secretName"] == "pathsieve-tokens"
    assert of_kind("Secret") == []


def test_what_belongs_together_finds_itself() -> None:
    (replicas,) = of_kind("StatefulSet")
    labels = replicas["spec"]["template"]["metadata"]["labels"]
    services = {one["metadata"]["name"]: one["spec"] for one in of_kind("Service")}
    peers = services[replicas["spec"]["serviceName"]]
    (budget,), (policy,) = of_kind("PodDisruptionBudget"), of_kind("NetworkPolicy")
    selectors = [*(one["selector"] for one in services.values()), replicas["spec"]["selector"]["matchLabels"]]
    selectors += [one["spec"][key]["matchLabels"] for one, key in ((budget, "selector"), (policy, "podSelector"))]
    selectors += [one["labelSelector"]["matchLabels"] for one in pod_spec()["topologySpreadConstraints"]]
    assert all(selector.items() <= labels.items() for selector in selectors)
    assert (peers["clusterIP"], peers["publishNotReadyAddresses"]) == ("None", True)
    advertised = environment_of_manifests()["PATHSIEVE_CLUSTER__ADVERTISE"]
    assert advertised == "pathsieve-0.pathsieve-peers.pathsieve.svc:7443"
    assert budget["spec"]["maxUnavailable"] == 1


@needs_helm
def test_the_plain_manifests_are_what_the_chart_makes() -> None:
    assert made() == MANIFESTS.read_text(), "`make manifests` puts it right"


VALUES = {
    "tls": ["--set", "security.tlsSecretName=tls"],
    "mutual_tls": ["--set", "security.tlsSecretName=tls,security.clientCa=true,security.tokensSecretName="],
    "open_to_all": ["--set", "security.insecurePublic=true,security.tokensSecretName=,networkPolicy.enabled=false"],
    "settings_of_ones_own": ["--set-string", "config=[extractors]\nprice = 'number(//price)'"],
    "the_rest": [
        *("--set", "image.tag=v1,image.pullSecrets={a,b},priorityClassName=high,nodeSelector.disk=fast"),
        *("--set-json", 'tolerations=[{"key": "a", "operator": "Exists"}]'),
        *("--set-json", 'service={"type": "LoadBalancer", "annotations": {"a": "b"}}'),
        *("--set-json", 'networkPolicy.extraEgress=[{"ports": [{"port": 443}]}]'),
    ],
}


@needs_helm
@pytest.mark.parametrize("options", VALUES.values(), ids=VALUES)
def test_other_values_make_something_valid_too(
    options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    objects = rendered(*options)
    for one in objects:
        kubernetes_validate.validate(one, "1.34", strict=True)
    assert violations(pod_spec(objects)) == []
    monkeypatch.chdir(tmp_path)
    for one in container(objects)["env"]:
        if "value" in one:
            monkeypatch.setenv(one["name"], one["value"].replace("$(POD_NAME)", "pathsieve-0"))
    monkeypatch.setenv("PATHSIEVE_CLUSTER__SECRET", "s")
    for config in of_kind("ConfigMap", objects):
        (tmp_path / "pathsieve.toml").write_text(config["data"]["pathsieve.toml"])
    check_exposure(load_settings())
    mounted = {mount["name"] for mount in container(objects)["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod_spec(objects)["volumes"]}


REFUSED = {
    "nobody_is_asked_who_he_is": ("security.tokensSecretName=", "whoever reaches the port could do everything"),
    "an_authority_without_tls": ("security.clientCa=true", "needs security.tlsSecretName"),
    "a_value_that_is_not": ("replica=5", "replica"),
    "a_value_of_the_wrong_kind": ("replicas=many", "replicas"),
}


@needs_helm
@pytest.mark.parametrize("value, problem", REFUSED.values(), ids=REFUSED)
def test_wrong_values_are_refused_and_named(value: str, problem: str) -> None:
    outcome = helm("--set", value)
    assert outcome.returncode != 0
    assert problem in outcome.stderr


def value_paths(values: dict[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths to all values; an empty table, or one that is handed on as it is, is a value."""
    for name, value in values.items():
        if isinstance(value, dict) and value and name not in HANDED_ON:
            yield from value_paths(value, (*prefix, name))
        else:
            yield (*prefix, name)


HANDED_ON = {"resources", "podAnnotations"}


def test_every_value_is_used_and_has_its_place_in_the_schema() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    templates = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    used = set(re.findall(r"\.Values\.([\w.]+)", templates))
    used |= {f"security.{name}" for name in re.findall(r"\$security\.(\w+)", templates)}
    assert used - {"security"} == {".".join(path) for path in value_paths(values)}
    schema = json.loads((CHART / "values.schema.json").read_text())
    for path in value_paths(values):
        place = schema
        for name in path:
            assert name in place["properties"]
            place = place["properties"][name]


def test_the_chart_has_the_version_of_the_project() -> None:
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == version
    images = {one["image"] for name, one in compose().items() if name.startswith("pathsieve")}
    assert images == {f"pathsieve:{version}"} == {container()["image"]}
