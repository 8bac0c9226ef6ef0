# SPDX-License-Identifier: Apache-2.0
"""Runs programs for bench/gpu/run: holds the build, an environment that finds CUDA's libraries, and a scratch folder. A
failing program raises Failure. The bench notes it and goes on.
"""
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from models import config_of, tokens_of

ROOT = Path(__file__).resolve().parents[2]
LOG_CHARS = 4000
DOUBLE = "a double of"  # starts the name of a simulated GPU


class Failure(Exception):
    """A check failed; `log` is the program's output."""

    def __init__(self, what, log=""):
        super().__init__(what)
        self.log = log[-LOG_CHARS:]


def pip_folders():
    """Returns the folders of NVIDIA's libraries that pip installed for this python3."""
    spec = importlib.util.find_spec("nvidia")
    return [str(folder) for place in (spec.submodule_search_locations if spec else [])
            for folder in sorted(Path(place).glob("*/lib"))]


class Machine:
    def __init__(self, build, scratch, emulated):
        self.build, self.scratch, self.emulated = Path(build).resolve(), Path(scratch), emulated
        self.weft = self.build / "cli/weft"
        self.env = dict(os.environ)
        home = subprocess.run([ROOT / "scripts/find_cuda.sh"], capture_output=True, text=True).stdout.strip()
        folders = [str(self.build / "tests/emulation/doubles")] if emulated else []
        folders += [self.env.get("LD_LIBRARY_PATH", ""), f"{home}/lib64" if home else "", *pip_folders()]
        folders += [str(ROOT / "lib")] if (ROOT / "lib").exists() else []  # bench/gpu/pack
        self.env["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
        self.env.setdefault("WEFT_CUDA_MODULE", str(self.build / "runtime/weft_cuda.so"))
        if emulated:
            self.env.setdefault("WEFT_DOUBLE_GPUS", "2")
        self.home = home
        self.runs = 0
        self.tokens = self.scratch / "tokens"
        self.tokens.write_bytes(tokens_of(9000, 61))

    def tool(self, name):
        """Returns the path of a program of the toolkit, or None."""
        beside = Path(self.home) / "bin" / name
        return shutil.which(name) or (str(beside) if self.home and beside.exists() else None)

    def sanitizer(self):
        """Returns the path of NVIDIA's compute-sanitizer, or None. A simulated GPU has nothing for it to check, so a
        test names a substitute.
        """
        return os.environ.get("WEFT_COMPUTE_SANITIZER") or (None if self.emulated else self.tool("compute-sanitizer"))

    def start(self, *words, env=None, foreign=False):
        """Starts a program; a foreign one does not see the folders of Weft's libraries."""
        own = os.environ if foreign else self.env
        return subprocess.Popen([str(word) for word in words], cwd=self.scratch, env={**own, **(env or {})},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def run(self, *words, env=None, timeout=300, foreign=False):
        """Returns exit code, stdout and stderr. After the timeout, or if the bench is stopped, it kills the program's
        process group."""
        process = self.start(*words, env=env, foreign=foreign)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise Failure(f"{Path(str(words[0])).name} did not end within {timeout} s", out + err) from None
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, out, err

    def lines(self, *words, timeout=600):
        """Yields the lines of stdout as they come. Raises Failure with stderr if the program fails, or is killed with its
        process group after the timeout.
        """
        process, err = self.start(*words), []
        killer = threading.Timer(timeout, os.killpg, (process.pid, signal.SIGKILL))
        reader = threading.Thread(target=lambda: err.append(process.stderr.read()))
        name = Path(str(words[0])).name
        killer.start()
        reader.start()
        try:
            yield from process.stdout
            code = process.wait()
            late = not killer.is_alive()
        finally:
            killer.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            reader.join()
        if code != 0:
            raise Failure(f"{name} did not end within {timeout} s" if late and code == -signal.SIGKILL else
                          f"{name} ended with exit code {code}", err[0])

    def config(self, device="cuda", data=None, **what):
        """Writes the config of one more run and returns its path."""
        self.runs += 1
        path = self.scratch / f"config{self.runs}.json"
        path.write_text(json.dumps(config_of(str(data or self.tokens), device, **what)))
        return path

    def train(self, device="cuda", gemm="plain", env=None, flags=(), **what):
        """Trains a config and returns the run's result, losses and norms."""
        path = self.config(device, **what)
        began = time.monotonic()
        code, out, err = self.run(self.weft, "train", path, "--run", f"run{self.runs}", "--json", *flags,
                                  env={"WEFT_GEMM": gemm, **(env or {})})
        if code != 0:
            raise Failure(f"weft train ended with exit code {code}", err)
        lines = [json.loads(line) for line in out.splitlines()]
        result = lines[-1]
        steps = [line for line in lines if line["kind"] == "step"]
        return {"fingerprint": result["fingerprint"], "losses": [line["loss"] for line in steps],
                "norms": [line.get("norm") for line in steps], "result": result,
                "seconds": round(time.monotonic() - began, 3)}

    def fails(self, code, says, *words, env=None, timeout=120):
        """Checks that a program ends with this exit code and this message. Returns the message's line."""
        got, out, err = self.run(*words, env=env, timeout=timeout)
        if got != code or says not in err:
            raise Failure(f"exit code {got}, not {code} with \"{says}\"", err + out)
        return next(line for line in err.splitlines() if says in line)


def tap(text):
    """Returns the names of passed and failed cases in TAP output."""
    good = re.findall(r"^ok \d+ - (.*)$", text, re.M)
    failed = re.findall(r"^not ok \d+ - (.*)$", text, re.M)
    return good, failed
