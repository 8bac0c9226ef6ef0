# SPDX-License-Identifier: Apache-2.0
"""Hosts of a network on one machine: a network namespace each, joined by a bridge. Needs root and iproute2.

    with Namespaces(2, rate="1gbit") as hosts:
        hosts.mpirun("openmpi", per_host, [program, ...])

A host's link is shaped in the direction from the host. Everything is removed at the end, also of a program that
was killed: the next one removes it first. Programs that want hosts at once take turns.
"""
import contextlib
import fcntl
import os
import shutil
import signal
import stat
import subprocess
from pathlib import Path

LIBRARIES = {"openmpi": "mpirun.openmpi", "mpich": "mpirun.mpich"}


class Unavailable(Exception):
    """Namespaces, or an MPI library, are not there. The text says why."""


def need_library(program, name):
    """Returns the launcher of an MPI library that this build has a module for."""
    launcher = shutil.which(LIBRARIES[name])
    module = Path(program).resolve().parent.parent / f"runtime/weft_{name}.so"
    if launcher is None:
        raise Unavailable(f"{LIBRARIES[name]} is not installed")
    if not module.exists():
        raise Unavailable(f"this build has no {module.name}")
    return launcher


def environment_of(name):
    """Root may start ranks in a test, and libraries must be silent about it."""
    if name == "openmpi":
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {}


def local_command(program, name, ranks):
    """The launcher's words for ranks of this machine."""
    launcher = need_library(program, name)
    return [launcher, "-q", "--oversubscribe", "-n", str(ranks)] if name == "openmpi" else \
        [launcher, "-n", str(ranks)]


class Namespaces:
    """Hosts 0 to n - 1, with the addresses 10.213.77.1 on. All but host 0 have another directory for `hidden`.
    `slow` has another rate for a host's link, or for the link between a pair of hosts."""

    def __init__(self, n, rate=None, directory="/tmp", hidden=None, slow=None):
        self.n, self.rate, self.slow = n, rate, slow or {}
        self.names = [f"weft-host-{i}" for i in range(n)]
        self.addresses = [f"10.213.77.{i + 1}" for i in range(n)]
        self.hides = f"mount -t tmpfs none {hidden} && " if hidden else ""
        self.agent = Path(directory) / "weft-hosts-agent"
        self.lock = None

    @staticmethod
    def _ip(*words, check=True):
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise Unavailable(f"ip {' '.join(words)}: {done.stderr.strip()}")

    def _remove(self):
        for i in range(self.n):  # a namespace's own links may outlive it for a moment
            self._ip("link", "del", f"weft-port-{i}", check=False)
        for name in self.names:
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
            for pid in pids.split():  # a launcher's daemon that cannot reach its launcher waits for minutes
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            self._ip("netns", "del", name, check=False)
        self._ip("link", "del", "weft-bridge", check=False)

    def __enter__(self):
        if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("tc") is None:
            raise Unavailable("hosts of network namespaces need root, ip and tc (iproute2)")
        self.lock = open("/tmp/weft-hosts.lock", "w", encoding="ascii")  # names are of the machine
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self._remove()
        try:
            self._ip("link", "add", "weft-bridge", "type", "bridge")
            self._ip("link", "set", "weft-bridge", "up")
            for i in range(self.n):
                self._add_host(i)
        except Unavailable:
            self._remove()
            self.lock.close()
            raise
        # rsh's part: starts a launcher's daemon on another host.
        cases = "".join(f"  {a}) name={n};;\n" for a, n in zip(self.addresses, self.names))
        self.agent.write_text("#!/bin/sh\nhost=$1\nshift\ncase $host in\n" + cases + "esac\n"
                              'exec ip netns exec "$name" unshare -u sh -c "hostname $name; ' + self.hides + '$*"\n')
        self.agent.chmod(self.agent.stat().st_mode | stat.S_IXUSR)
        return self

    def _add_host(self, i):
        name, port = self.names[i], f"weft-port-{i}"
        self._ip("netns", "add", name)
        self._ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        self._ip("link", "set", port, "master", "weft-bridge")
        self._ip("link", "set", port, "up")
        inside = ["netns", "exec", name, "ip"]
        self._ip(*inside, "addr", "add", f"{self.addresses[i]}/24", "dev", "eth0")
        self._ip(*inside, "link", "set", "eth0", "up")
        self._ip(*inside, "link", "set", "lo", "up")
        if self.rate:
            self._shape(i)

    def _shape(self, i):
        """Bytes to the partners of a slow pair have a class of their own."""
        tc = ["netns", "exec", self.names[i], "tc"]
        bucket = ["tbf", "rate", self.slow.get(i, self.rate), "burst", "256kb", "latency", "5ms"]
        partners = {b if a == i else a: rate for (a, b), rate in
                    ((pair, rate) for pair, rate in self.slow.items() if isinstance(pair, tuple)) if i in (a, b)}
        if not partners:
            self._ip(*tc, "qdisc", "add", "dev", "eth0", "root", *bucket)
            return
        self._ip(*tc, "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "1")
        for number, (rate, partner) in enumerate([(self.rate, None), *((r, p) for p, r in partners.items())], 1):
            self._ip(*tc, "class", "add", "dev", "eth0", "parent", "1:", "classid", f"1:{number}", "htb", "rate", rate,
                     "burst", "256kb", "cburst", "256kb")
            if partner is not None:
                self._ip(*tc, "filter", "add", "dev", "eth0", "parent", "1:", "protocol", "ip", "u32", "match", "ip",
                         "dst", f"{self.addresses[partner]}/32", "flowid", f"1:{number}")

    def __exit__(self, *_):
        self._remove()
        self.agent.unlink(missing_ok=True)
        if self.lock is not None:
            self.lock.close()

    def sent_bytes(self):
        """Bytes that each host has sent over its interface, with all headers."""
        return [int(subprocess.run(["ip", "netns", "exec", name, "cat", "/sys/class/net/eth0/statistics/tx_bytes"],
                                   capture_output=True, text=True, check=True).stdout) for name in self.names]

    def pids(self, i, program):
        """Processes of a host that run the program."""
        listed = subprocess.run(["ip", "netns", "pids", self.names[i]], capture_output=True, text=True, check=True).stdout
        found = []
        for pid in listed.split():
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe") == str(Path(program).resolve()):
                    found.append(int(pid))
        return found

    def command(self, program, name, per_host):
        """The launcher's words, for a process on host 0. Ranks of different hosts must use the network."""
        launcher = need_library(program, name)
        start = ["ip", "netns", "exec", self.names[0], "unshare", "-u", "sh", "-c",
                 f'hostname {self.names[0]}; exec "$@"', "sh", launcher]
        if name == "openmpi":
            hosts = ",".join(f"{a}:{per_host}" for a in self.addresses)
            network = "10.213.77.0/24"
            return [*start, "-q", "--oversubscribe", "--host", hosts, "--map-by", f"ppr:{per_host}:node",
                    "--bind-to", "none", "--mca", "plm_rsh_agent", str(self.agent), "--mca", "pml", "ob1", "--mca", "btl", "self,tcp",
                    "--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network]
        return [*start, "-launcher", "rsh", "-launcher-exec", str(self.agent), "-hosts", ",".join(self.addresses),
                "-ppn", str(per_host), "-n", str(per_host * self.n), "-genv", "UCX_TLS", "tcp,self",
                "-genv", "UCX_NET_DEVICES", "eth0"]
