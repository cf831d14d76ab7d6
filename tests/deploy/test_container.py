"""The Dockerfile: the image where Docker is at hand, else its steps in a folder of this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.conftest import ENDING, come_up, free_port
from tests.paths import ROOT

UNREACHABLE = re.compile("[Ff]ailed to fetch|error sending request|operation timed out")
STEP = re.compile(r"^([A-Z]+) +(.*)$")


def steps() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, in order."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    found = (STEP.match(line) for line in text.splitlines() if line and not line.startswith("#"))
    return [(match[1], match[2]) for match in found if match]


def of(kind: str) -> list[str]:
    return [words for name, words in steps() if name == kind]


def as_list(words: str) -> list[str]:
    result: list[str] = json.loads(words[words.index("[") :])
    return result


def pip_name(name: str) -> str:
    return name.lower().replace("_", "-")


def docker() -> bool:
    asked = shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True)
    return bool(asked and asked.returncode == 0)


def test_the_image_is_served_by_nobody_in_particular() -> None:
    assert of("USER") == ["scant"]
    assert of("HEALTHCHECK")
    assert len(of("FROM")) == 2
    order = [name for name, _ in steps()]
    assert order.index("USER") < order.index("CMD")
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    assert "build: ." in compose
    assert "service_healthy" in compose


@pytest.mark.skipif(not docker(), reason="no Docker here: its steps are tried without it")
def test_the_image_serves() -> None:
    subprocess.run(["docker", "build", "--tag", "scant-test", "."], cwd=ROOT, check=True)
    size = subprocess.check_output(
        ["docker", "image", "inspect", "-f", "{{.Size}}", "scant-test"], text=True
    )
    assert int(size) < 1.5e9
    port = free_port()
    command = ["docker", "run", "--rm", "-p", f"127.0.0.1:{port}:5006", "scant-test"]
    with subprocess.Popen(command) as server:
        try:
            come_up(f"http://127.0.0.1:{port}", server, ROOT / "Dockerfile")
        finally:
            server.terminate()


@pytest.mark.skipif(docker(), reason="Docker is here: the image itself is tried")
def test_the_steps_of_the_image_serve(tmp_path: Path) -> None:
    place = {"/opt/scant": tmp_path / "opt", "/src": tmp_path / "src"}
    shutil.copytree(
        ROOT, place["/src"], ignore=shutil.ignore_patterns(".*", "build", "tests", "__pycache__")
    )
    tools = tmp_path / "tools"
    subprocess.run([sys.executable, "-m", "venv", tools], check=True)
    environment = {**os.environ, "PATH": f"{tools}/bin:{os.environ['PATH']}"}
    for name in ("FIND_LINKS", "INDEX_URL", "EXTRA_INDEX_URL"):  # uv does not read pip's
        asked = [sys.executable, "-m", "pip", "config", "get", f"global.{pip_name(name)}"]
        known = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
        if given := os.environ.get(f"PIP_{name}", known):
            environment[f"UV_{name}"] = given
    environment["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip, which looks at all of them
    for run in of("RUN"):
        if "useradd" in run:
            continue  # this machine keeps its users
        for path, own in place.items():
            run = run.replace(path, str(own))
        done = subprocess.run(run, shell=True, env=environment, capture_output=True, text=True)
        if "install --no-cache-dir uv" in run and done.returncode:
            pytest.skip("uv cannot be had here")
        if done.returncode and UNREACHABLE.search(done.stderr):
            pytest.skip("the packages cannot be fetched here")
        assert done.returncode == 0, done.stderr
    size = sum(f.stat().st_size for f in place["/opt/scant"].rglob("*") if not f.is_symlink())
    assert size < 1.3e9  # beside the base image's 0.15
    (tmp_path / "home").mkdir()
    serving = {
        "PATH": f"{place['/opt/scant']}/bin:/usr/bin:/bin", "HOME": str(tmp_path / "home"),
        "PORT": str(free_port()), "SCANT_DATA_DIR": str(tmp_path / "data"),
    }  # fmt: skip
    log = tmp_path / "log"
    with open(log, "w") as file:
        server = subprocess.Popen(
            as_list(of("CMD")[0]), env=serving, cwd=serving["HOME"], stdout=file, stderr=file,
            executable=str(place["/opt/scant"] / "bin" / "scant"),
        )  # fmt: skip
    try:
        come_up(f"http://127.0.0.1:{serving['PORT']}", server, log)
        check = as_list(of("HEALTHCHECK")[0])
        check[0] = str(place["/opt/scant"] / "bin" / "python")
        assert subprocess.run(check, env=serving).returncode == 0
    finally:
        server.terminate()
        assert server.wait(timeout=ENDING) == 0
    serving["PORT"] = str(free_port())
    assert subprocess.run(check, env=serving, capture_output=True).returncode != 0
