#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Containerfile and examples/kubernetes/job.yaml, as far as their texts tell: deployment.py WEFT SOURCE_ROOT. TAP.

Fields and rules of the Job are the documented ones of batch/v1 and core/v1 of Kubernetes. No image is built and no Job
is applied here.
"""
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from tap import Skip, case, main  # pylint: disable=wrong-import-position

ROOT = Path(sys.argv[2])
JOB = ROOT / "examples/kubernetes/job.yaml"
INSTRUCTIONS = {"FROM", "RUN", "COPY", "WORKDIR", "ENTRYPOINT", "CMD", "ENV", "ARG", "LABEL", "USER", "VOLUME", "EXPOSE",
                "STOPSIGNAL", "HEALTHCHECK", "SHELL", "ADD", "ONBUILD"}
QUANTITY = re.compile(r"\d+(?:\.\d+)?(?:m|[kMGTPE]|[KMGTPE]i)?")
# A field's type, or the fields of its object; a list has one element for all. REQUIRED are the needed ones by path.
VOLUME = {"name": str, "persistentVolumeClaim": {"claimName": str, "readOnly": bool},
          "emptyDir": {"medium": str, "sizeLimit": QUANTITY}}
CONTAINER = {"name": str, "image": str, "command": [str], "args": [str], "workingDir": str,
             "env": [{"name": str, "value": str}],
             "resources": {"requests": {"cpu": QUANTITY, "memory": QUANTITY}, "limits": {"cpu": QUANTITY, "memory": QUANTITY}},
             "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool, "subPath": str}]}
POD = {"restartPolicy": str, "terminationGracePeriodSeconds": int, "nodeSelector": dict, "containers": [CONTAINER],
       "volumes": [VOLUME]}
RULE = {"action": str, "onExitCodes": {"containerName": str, "operator": str, "values": [int]}}
FIELDS = {"apiVersion": str, "kind": str, "metadata": {"name": str, "labels": dict, "namespace": str},
          "spec": {"backoffLimit": int, "completions": int, "parallelism": int, "activeDeadlineSeconds": int,
                   "ttlSecondsAfterFinished": int, "podFailurePolicy": {"rules": [RULE]},
                   "template": {"metadata": {"labels": dict}, "spec": POD}}}
REQUIRED = {"": ("apiVersion", "kind", "metadata", "spec"), ".spec": ("template",), ".spec.template": ("spec",),
            ".spec.template.spec": ("containers", "restartPolicy"), ".spec.template.spec.containers": ("name", "image"),
            ".spec.template.spec.volumes": ("name",), ".spec.podFailurePolicy.rules": ("action",)}


def version():
    return re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]


def faults_of(value, fields, path=""):
    """Lists fields that are not documented, of another type, or missing."""
    if isinstance(fields, re.Pattern):
        return [] if fields.fullmatch(str(value)) else [f"{path}: {value!r} is no quantity"]
    if isinstance(fields, type):
        return [] if type(value) is fields else [f"{path}: {value!r} is no {fields.__name__}"]
    if isinstance(fields, list):
        if not isinstance(value, list) or not value:
            return [f"{path}: no list, or an empty one"]
        return [fault for one in value for fault in faults_of(one, fields[0], path)]
    if not isinstance(value, dict):
        return [f"{path}: no object"]
    faults = [f"{path}.{name} is not documented" for name in value if name not in fields]
    faults += [f"{path}.{name} is missing" for name in REQUIRED.get(path, ()) if name not in value]
    return faults + [fault for name, one in value.items() if name in fields
                     for fault in faults_of(one, fields[name], f"{path}.{name}")]


def rules_broken(job):
    """Rules over several fields, which the API server checks."""
    spec = job["spec"]
    pod, broken = spec["template"]["spec"], []
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    mounts = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", [])}
    if (job["apiVersion"], job["kind"]) != ("batch/v1", "Job"):
        broken.append("it is no Job of batch/v1")
    if volumes != mounts:
        broken.append(f"volumes {sorted(volumes)}, mounted {sorted(mounts)}")
    if pod["restartPolicy"] not in ("Never", "OnFailure"):
        broken.append("restartPolicy")
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        codes = rule["onExitCodes"]
        if rule["action"] not in ("FailJob", "FailIndex", "Ignore", "Count") or codes["operator"] not in ("In", "NotIn"):
            broken.append(f"rule {rule}")
        if codes["values"] != sorted(set(codes["values"])) or (codes["operator"] == "In" and 0 in codes["values"]):
            broken.append(f"exit codes {codes['values']} are not in order, or 0 is among them")
        if pod["restartPolicy"] != "Never":
            broken.append("podFailurePolicy needs restartPolicy Never")
    return broken


def read_job():
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError as why:
        raise Skip("PyYAML is not installed") from why
    documents = list(yaml.safe_load_all(JOB.read_text()))
    assert len(documents) == 1, documents
    return documents[0]


@case
def the_job_has_documented_fields(_):
    job = read_job()
    assert not faults_of(job, FIELDS) and not rules_broken(job), (faults_of(job, FIELDS), rules_broken(job))


@case
def wrong_jobs_are_found(_):
    """Each change of the job breaks a check."""
    changes = [("spec", "backOffLimit", 3), ("spec", "backoffLimit", "20"), ("spec.template.spec", "containers", []),
               ("spec.template.spec", "restartPolicy", "OnFailure"), ("spec.template.spec", "volumes", []),
               ("spec.template.spec.containers.0", "resources", {"limits": {"memory": "16GiB"}}),
               ("spec.podFailurePolicy.rules.0.onExitCodes", "values", [0, 64]), ("", "apiVersion", "batch/v1beta1")]
    for path, name, value in changes:
        job = at = json.loads(json.dumps(read_job()))
        for part in filter(None, path.split(".")):
            at = at[int(part) if part.isdigit() else part]
        at[name] = value
        assert faults_of(job, FIELDS) or rules_broken(job), (path, name)


@case
def the_job_calls_the_program_as_it_is(weft):
    """Verb and flags are the program's, the image is the Containerfile's, and codes that fail the Job mean what it says."""
    job = read_job()
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"weft:{version()}" and f"build -t weft:{version()} ." in (ROOT / "Containerfile").read_text()
    verb, *words = container["args"]
    told = weft.expect(0, "help", verb)
    flags = [word.split("=")[0] for word in words if word.startswith("-")]
    assert len(flags) > 3 and all(re.search(rf"(?m)^ .*{re.escape(flag)}\b", told) for flag in flags), flags
    codes = set(job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"])
    weft.write("bad.json", "{")
    for words, code in ((("train", "--nonsense"), 64), (("train", "bad.json"), 65), (("train", "absent.json"), 66)):
        weft.expect(code, *words)
        assert code in codes
    assert 69 not in codes and 75 not in codes, "a lost rank and a stop start again"


@case
def the_containerfile_is_complete(_):
    """Known instructions in order, stages that exist, and the packages that scripts/packages.sh needs for the program."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text())
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    assert {line[0] for line in lines} <= INSTRUCTIONS and lines[0][0] == "FROM", lines
    stages = [line[1].split() for line in lines if line[0] == "FROM"]
    names = [words[2] for words in stages if len(words) == 3 and words[1] == "AS"]
    assert all(":12" in words[0] for words in stages), "Debian 12"
    sources = re.findall(r"--from=(\w+)", text)
    assert sources and set(sources) <= set(names), (sources, names)
    needed = re.search(r'wanted="(meson [^"]*)"', (ROOT / "scripts/packages.sh").read_text())[1].split()
    installed = re.search(r"apt-get install -y --no-install-recommends ([^&]*)", text)[1].split()
    lacking = set(needed) - set(installed) - {"libcriterion-dev"}  # unit tests alone
    assert not lacking, lacking
    for option in re.findall(r" -D(\w+)=", text):
        assert f"option('{option}'" in (ROOT / "meson_options.txt").read_text(), option
    entry = next(line[1] for line in lines if line[0] == "ENTRYPOINT")
    assert json.loads(entry) == ["weft"], entry


main(sys.argv[1])
