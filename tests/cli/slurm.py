#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of two hosts on this machine: a slurmd in each of two network namespaces, slurmctld in the first."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from configs import tiny
from namespaces import LIBRARIES, Namespaces, Unavailable, environment_of
from tap import Skip, case, main

SCRIPT = Path(__file__).resolve().parents[2] / "examples/slurm/cpu.sh"
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol")
TYPES = {"openmpi": "pmix", "mpich": "pmi2"}
INTER = {"alpha": "100us", "bandwidth": "100MB/s"}
# Transports would take shared memory between namespaces of one machine.
NETWORK = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp",
           "OMPI_MCA_btl_tcp_if_include": "10.213.77.0/24"}


def config_of(directory, hosts):
    lines = [
        "ClusterName=weft", f"SlurmctldHost={hosts.names[0]}({hosts.addresses[0]})", "AuthType=auth/munge",
        f"AuthInfo=socket={directory}/munge.socket", "SlurmUser=root", "SlurmdUser=root",
        f"StateSaveLocation={directory}/state", f"SlurmdSpoolDir={directory}/spool-%n", f"TmpFS={directory}/tmp-%n",
        f"SlurmctldPidFile={directory}/slurmctld.pid", f"SlurmdPidFile={directory}/slurmd-%n.pid",
        f"SlurmctldLogFile={directory}/slurmctld.log", f"SlurmdLogFile={directory}/slurmd-%n.log",
        "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SelectType=select/cons_tres",
        "JobAcctGatherType=jobacct_gather/none", "SlurmdParameters=config_overrides", "ReturnToService=2",
    ]
    lines += [f"NodeName={name} NodeAddr={address} CPUs=8 RealMemory=1000"
              for name, address in zip(hosts.names, hosts.addresses)]
    lines.append(f"PartitionName=all Nodes={','.join(hosts.names)} Default=YES OverSubscribe=FORCE")
    return "\n".join(lines) + "\n"


class Slurm:
    """The cluster. Its files are in a short path, since munge's socket has one of at most 107 characters."""

    def __init__(self, weft):
        for program in PROGRAMS:
            if not (shutil.which(program) or shutil.which(f"/usr/sbin/{program}")):
                raise Skip(f"{program} is not installed (slurmctld, slurmd, slurm-client, munge)")
        self.weft = weft
        self.hosts = Namespaces(2, directory=weft.directory)
        self.directory = Path(tempfile.mkdtemp(prefix="weft-slurm-"))
        self.directory.chmod(0o755)
        self.daemons = []

    def on(self, host, *words, **options):
        """Starts a process on a host."""
        name = self.hosts.names[host]
        environment = {**os.environ, **NETWORK, **environment_of("openmpi"), "WEFT": self.weft.program,
                       "SLURM_CONF": str(self.directory / "slurm.conf"), **options.pop("env", {})}
        # `ip netns exec` would mount a /sys without the cgroups that slurmd needs.
        return subprocess.Popen(["nsenter", f"--net=/run/netns/{name}", "unshare", "-u", "sh", "-c", f'hostname {name}; exec "$@"',
                                 "sh", *words], cwd=self.weft.directory, env=environment, text=True, **options)

    def ask(self, *words, timeout=100, **options):
        process = self.on(0, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return process.returncode, out, err

    def start_daemon(self, host, *words):
        self.daemons.append(self.on(host, *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def __enter__(self):
        try:
            self.hosts.__enter__()
        except Unavailable as why:
            raise Skip(str(why)) from why
        (self.directory / "slurm.conf").write_text(config_of(self.directory, self.hosts))
        for name in ("state", *(f"{part}-{name}" for part in ("spool", "tmp") for name in self.hosts.names)):
            (self.directory / name).mkdir()
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.start_daemon(0, "/usr/sbin/munged", "--foreground", "--force", f"--key-file={key}",
                          *(f"--{name}={self.directory}/munge.{name[:4]}{end}" for name, end in
                            (("socket", "et"), ("pid-file", ""), ("log-file", ""), ("seed-file", ""))))
        self.start_daemon(0, "/usr/sbin/slurmctld", "-D", "-c")
        for i, name in enumerate(self.hosts.names):
            self.start_daemon(i, "/usr/sbin/slurmd", "-D", "-N", name)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            code, out, _ = self.ask("sinfo", "-h", "-o", "%T %D")
            if code == 0 and out.split() == ["idle", "2"]:
                return self
            time.sleep(0.3)
        self.__exit__()
        raise Skip("Slurm's daemons did not start")

    def end_jobs(self):
        """A batch script outlives its daemon, so it must end first."""
        end = time.monotonic() + 15
        while time.monotonic() < end and self.ask("squeue", "-h")[1].strip():
            self.ask("scancel", "--full", "--signal=KILL", "--user=root")
            self.ask("scancel", "--user=root")
            time.sleep(0.3)

    def __exit__(self, *_):
        self.end_jobs()
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
        self.hosts.__exit__()
        shutil.rmtree(self.directory, ignore_errors=True)

    def srun(self, library, *words, **options):
        kind = TYPES.get(library, library)
        return self.ask("srun", f"--mpi={kind}", "--nodes=2", "--ntasks-per-node=1", "--quiet", self.weft.program,
                        *words, **options)


def libraries_of(weft):
    found = [name for name in LIBRARIES
             if (Path(weft.program).resolve().parent.parent / f"runtime/weft_{name}.so").exists()]
    if not found:
        raise Skip("this build has no module of an MPI library")
    return found


def spread(weft, **changes):
    return weft.write("run.json", tiny(cluster__threads=1, plan__work_limit="20M", cluster__ranks_per_node=1,
                                       cluster__link__inter=INTER, **changes))


def result_of(weft, run):
    return json.loads((weft.directory / run / "result.json").read_text())


def own_lines(err):
    return [line for line in err.splitlines() if line.startswith("weft: ")]


@case
def srun_starts_ranks_of_both_libraries(weft):
    config = spread(weft)
    weft.expect(0, "train", config, "--quiet", "--run", "local")
    with Slurm(weft) as slurm:
        for library in libraries_of(weft):
            code, _, err = slurm.srun(library, "train", config, "--quiet", "--run", weft.fresh("run"))
            assert code == 0 and not own_lines(err), (library, code, err)
            assert result_of(weft, "run")["fingerprint"] == result_of(weft, "local")["fingerprint"], library
            code, _, err = slurm.srun(library, "train", config, "--quiet",
                                      env={"WEFT_FAILPOINT": "forward:rank=1:step=2:do=kill"})
            told = own_lines(err)
            # srun gives the highest code of its tasks: 137 of the killed one.
            assert code == 137 and len(told) == 1 and "rank 1 (host weft-host-1) has ended" in told[0], (library, code, err)
        code, _, err = slurm.srun("none", "train", config, "-n", "2", "--quiet", "--run", weft.fresh("run"))
        assert code == 1 and "srun started 2 tasks without MPI" in err, (code, err)


def await_text(path, pattern, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists() and re.search(pattern, path.read_text()):
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} lacks {pattern}: {path.read_text() if path.exists() else 'no file'}")


@case
def a_signalled_job_enters_the_queue_again_and_goes_on(weft):
    config = spread(weft, train__steps=1500, train__checkpoint__at_end=True)
    weft.expect(0, "train", config, "--quiet", "--run", "local")
    output, library = weft.directory / "job.txt", libraries_of(weft)[-1]
    with Slurm(weft) as slurm:
        code, out, err = slurm.ask("sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=1", f"--output={output}",
                                   str(SCRIPT), config, "run", env={"MPI": TYPES[library]})
        assert code == 0, err
        job = out.strip()
        await_text(output, r"(?m)^step +[1-9]\d+/")
        assert slurm.ask("scancel", "--signal=USR1", job)[0] == 0
        end = time.monotonic() + 60
        while "Restarts=1" not in slurm.ask("scontrol", "show", "job", job)[1]:
            assert time.monotonic() < end, output.read_text()
            time.sleep(0.2)
        assert os.listdir(weft.path("run/checkpoints")) != ["step-1500"], "the signal came too late"
        while not (weft.directory / "run/result.json").exists() or result_of(weft, "run")["steps_done"] < 1500:
            assert time.monotonic() < end + 60, output.read_text()
            slurm.ask("scontrol", "update", f"JobId={job}", "StartTime=now")  # Slurm waits two minutes
            time.sleep(0.5)
    assert result_of(weft, "run")["fingerprint"] == result_of(weft, "local")["fingerprint"]


main(sys.argv[1])
