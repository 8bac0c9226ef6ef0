#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed files suffice to use Weft: install.py BUILD_ROOT SOURCE_ROOT LIBWEFT WEFT SANITIZERS.
TAP."""
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from tap import Skip, case, main  # noqa: E402

BUILD, SOURCE, LIBRARY = (Path(path).resolve() for path in sys.argv[1:4])
SANITIZERS = sys.argv[5]
ROOT = tempfile.TemporaryDirectory()


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          timeout=200, check=False, **options)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def tool(name):
    if not shutil.which(name):
        raise Skip(f"{name} is not installed")
    return name


def installed():
    """The prefix under a root of its own, filled the first time."""
    root = Path(ROOT.name)
    if not any(root.iterdir()):
        run(tool("meson"), "install", "-C", BUILD, "--no-rebuild",
            env={**os.environ, "DESTDIR": str(root)})
    return next(root.rglob("weft.pc")), root


def pkg_config(*arguments):
    pc, root = installed()
    return run(tool("pkg-config"), *arguments, "weft",
               env={**os.environ, "PKG_CONFIG_PATH": str(pc.parent),
                    "PKG_CONFIG_SYSROOT_DIR": str(root)}).split()


def declared():
    """Functions that the header marks for users."""
    header = (SOURCE / "include/weft.h").read_text()
    return set(re.findall(r"^WEFT_API\b[^;]*?\b(weft_\w+)\(", header, re.M))


@case
def what_is_exported_is_what_the_header_declares(weft):
    listed = run(tool("nm"), "-D", "--defined-only", LIBRARY)
    exported = {line.split()[2] for line in listed.splitlines() if line.split()[1] in "TDBRVWi"}
    if SANITIZERS != "none":
        exported = {name for name in exported if name.startswith("weft_")}
    assert exported == declared(), exported ^ declared()
    assert len(exported) > 20, exported
    dynamic = run(tool("readelf"), "-d", LIBRARY)
    assert "SONAME" in dynamic and "[libweft.so.0]" in dynamic, dynamic
    assert "glpk" not in dynamic, "the library links the solver"


@case
def everything_is_where_it_belongs(weft):
    pc, root = installed()
    prefix = next(root.rglob("bin/weft")).parent.parent
    for path in ("include/weft.h", "share/doc/weft/keys.md",
                 "share/doc/weft/CHANGELOG.md", "share/weft/configs/runs/gpt-tiny.json", "share/doc/weft/examples/gate.c"):
        assert (prefix / path).is_file(), f"{path} is not installed"
    shares = {"docs": "doc/weft", "examples": "doc/weft/examples", "python/examples": "doc/weft/examples/python",
              "configs": "weft/configs"}
    for folder, place in shares.items():
        names = [path.relative_to(SOURCE / folder) for path in (SOURCE / folder).rglob("*") if path.is_file()]
        lacking = [str(name) for name in names if name.name != "meson.build" and "__pycache__" not in name.parts and
                   not (prefix / "share" / place / name).is_file()]
        assert names and not lacking, f"of {folder} are not installed: {lacking}"
    for path in ("bash-completion/completions/weft", "fish/vendor_completions.d/weft.fish", "zsh/site-functions/_weft"):
        assert "gpt-tiny" in (prefix / "share" / path).read_text(), f"{path} has no shipped names"
    assert (pc.parent.parent / "libweft.so").exists(), "no library beside its pkg-config file"
    archives = [path.name for path in root.rglob("*.a")]
    assert archives == ["libweft.a"], f"parts of the program are installed: {archives}"
    version = run(prefix / "bin/weft", "version").split()[-1]
    assert pkg_config("--modversion") == [version], version
    if (BUILD / "scheduler/weft-solve").exists():
        assert (prefix / "libexec/weft/weft-solve").is_file(), "weft-solve is not installed"


@case
def each_installed_file_has_one_package_of_Debian(weft):
    """debian/*.install name the files; libraries are in a folder of the architecture there."""
    _, root = installed()
    prefix = next(root.rglob("bin/weft")).parent.parent
    lists = {path.stem: [line.split()[0].replace("usr/lib/*/", "usr/lib/") for line in path.read_text().splitlines()]
             for path in (SOURCE / "debian").glob("*.install")}
    moved = "LICENSE", "weft-solve-highs", "weft_cuda.so"  # of debian/copyright; optional parts that no package has
    bad, files = [], [path for path in prefix.rglob("*") if not path.is_dir() and path.name not in moved]
    for path in files:
        name = "usr/" + str(path.relative_to(prefix))
        found = [package for package, patterns in lists.items() for pattern in patterns
                 if fnmatch.fnmatch(name, pattern) or name.startswith(pattern + "/")]
        bad += [] if len(found) == 1 else [(name, found)]
    assert len(files) > 100 and len(lists) >= 6 and not bad, bad
    version = re.search(r"version: '([^']+)'", (SOURCE / "meson.build").read_text())[1]
    assert (SOURCE / "debian/changelog").read_text().startswith(f"weft ({version}) "), version


@case
def packages_of_Debian_need_a_maintainer(weft):
    """The tree names none. `set-maintainer` writes one, and the build asks it."""
    shutil.copytree(SOURCE / "debian", weft.path("debian"))
    setter = weft.path("debian/set-maintainer")

    def set_maintainer(*words, **names):
        env = {key: value for key, value in os.environ.items() if key not in ("DEBFULLNAME", "DEBEMAIL")}
        done = subprocess.run(["sh", setter, *words], capture_output=True, text=True, check=False, env={**env, **names})
        return done.returncode, done.stderr

    def names():
        control, changelog = (Path(weft.path(f"debian/{name}")).read_text() for name in ("control", "changelog"))
        return re.findall(r"^Maintainer: (.*)$", control, re.M) + re.findall(r"^ -- (.*>)  \w{3}, .*\d{4}$", changelog, re.M)

    before = names()
    assert "set-maintainer --check" in Path(weft.path("debian/rules")).read_text() and len(before) == 2
    code, told = set_maintainer("--check")
    assert code == 1 and "have no maintainer yet: sh debian/set-maintainer 'NAME <ADDRESS>'" in told, told
    for bad in ("", "Ada", "Ada <ada>", "<ada@engine.invalid>", "Ada <ada@engine.invalid>\nEvil: x", "A <a@b> B <c@d>"):
        assert set_maintainer(bad)[0] == 64 and names() == before, bad
    assert set_maintainer()[0] == 64
    assert set_maintainer("Ada & \u0141 <ada@engine.invalid>") == (0, "") == set_maintainer("--check")
    assert names() == ["Ada & \u0141 <ada@engine.invalid>"] * 2
    assert set_maintainer(DEBFULLNAME="Bob", DEBEMAIL="bob@engine.invalid") == (0, "")
    assert names() == ["Bob <bob@engine.invalid>"] * 2


@case
def pages_that_messages_name_are_installed(weft):
    """Messages, help and installed pages name docs/NAME.md, examples/ and configs/."""
    _, root = installed()
    share = next(root.rglob("bin/weft")).parent.parent / "share"
    sources = [path for folder in ("base", "spec", "layers", "shard", "memory_model", "problem", "plan", "program",
                                   "scheduler", "offload", "runtime", "library", "report", "cli")
               for path in (SOURCE / folder).rglob("*.c")]
    texts = {path: "".join(re.findall(r'"(?:[^"\\\n]|\\.)*"', re.sub(r"#include.*", "", path.read_text())))
             for path in sources}
    pages = list((share / "doc/weft").glob("*.md"))
    texts.update({page: page.read_text() for page in pages})
    named = {name: path for path, text in texts.items()
             for name in re.findall(r"\b((?:docs/[\w-]+\.md|(?:configs|examples)/[\w/.-]*\w))", text)}
    assert len(named) > 15 and len(pages) > 12, named
    places = {"docs": share / "doc/weft", "configs": share / "weft/configs", "examples": share / "doc/weft/examples"}
    missing = {name: path.name for name, path in named.items()
               if "NAME" not in name and not (places[name.split("/")[0]] / name.split("/", 1)[1]).exists()}
    assert not missing, missing


@case
def the_alias_product_has_all_that_is_installed(weft):
    """`make install` builds it alone."""
    plan = json.loads((BUILD / "meson-info/intro-installed.json").read_text())
    built = {str(Path(path).relative_to(BUILD)) for path in plan if BUILD in Path(path).parents}
    inputs = {word for kind in ("query", "inputs")  # direct ones, and theirs
              for word in run(tool("ninja"), "-C", BUILD, "-t", kind, "product").split()}
    missing = {path for path in built if path not in inputs and not path.startswith("meson-private/")}
    assert len(built) > 20 and not missing, missing


@case
def installed_schemas_are_the_program_s(weft):
    pc, root = installed()
    prefix = next(root.rglob("bin/weft")).parent.parent
    schemas = sorted((prefix / "share/weft/schema").iterdir())
    assert [path.stem for path in schemas] == ["cluster", "config", "export", "manifest", "metrics",
                                               "model", "plan", "profile", "result", "rival"], schemas
    for path in schemas:
        assert path.read_text() == run(prefix / "bin/weft", "schema", path.stem), path


@case
def without_tests_only_the_product_is_built(weft):
    build = weft.path("build")
    run(tool("meson"), "setup", build, SOURCE, "-Dtests=disabled", "-Dgpu=disabled")
    targets = json.loads(run("meson", "introspect", "--targets", build))
    folders = {Path(target["defined_in"]).relative_to(SOURCE).parts[0] for target in targets}
    assert "cli" in folders and not folders & {"tests", "bench"}, folders


@case
def what_is_installed_is_hardened(weft):
    if SANITIZERS != "none":
        raise Skip("sanitizers check more")
    pc, root = installed()
    files = [next(root.rglob("bin/weft")), pc.parent.parent / "libweft.so",
             *root.rglob("libexec/weft/weft-solve")]
    commands = (BUILD / "compile_commands.json").read_text()
    for path in files:
        dynamic = run(tool("readelf"), "-dW", path)
        assert re.search(r"FLAGS_1.*\bNOW\b", dynamic), f"{path} binds late"
        segments = run("readelf", "-lW", path)
        assert "GNU_RELRO" in segments, f"{path} has a writable table of addresses"
        assert not re.search(r"GNU_STACK.*\bRWE\b", segments), f"{path} has an executable stack"
        assert "Type:                              DYN" in run("readelf", "-hW", path), path
        asked = run(tool("nm"), "-D", "--undefined-only", path)
        assert "__stack_chk_fail" in asked, f"{path} has no stack protector"
        if "-D_FORTIFY_SOURCE" in commands:
            assert re.search(r"__\w+_chk\b", asked.replace("__stack_chk", "")), path
    if "-fcf-protection=full" in commands:
        code = run(tool("objdump"), "-d", "--disassemble=weft_open", LIBRARY)
        first = re.search(r"<weft_open>:\n.*\t(\w+)", code)
        assert first and first[1] == "endbr64", code[:400]


@case
def the_example_builds_with_what_pkg_config_says(weft):
    if SANITIZERS != "none":
        raise Skip("a library with sanitizers is not for programs without")
    pc, root = installed()
    prefix = next(root.rglob("bin/weft")).parent.parent
    examples = prefix / "share/doc/weft/examples"
    gate = weft.path("gate")
    flags = pkg_config("--cflags", "--libs")
    run(tool("cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", examples / "gate.c", *flags, "-lm",
        "-o", gate)
    env = {**os.environ, "LD_LIBRARY_PATH": str(pc.parent.parent)}
    out = run(gate, examples / "gate.json", weft.path("run"), "train.steps=3", env=env)
    assert "step 3 of 3: loss" in out, out
    out = run(prefix / "bin/weft", "launch", "-n", "2", gate, examples / "gate.json",
              weft.path("two"), "train.steps=3", env=env)
    assert "step 3 of 3: loss" in out, out
    lines = len((SOURCE / "examples/gate.c").read_text().splitlines())
    assert lines < 170, f"the example has {lines} lines"


@case
def the_example_builds_with_the_static_library(weft):
    """The library's own code is in the program, and other people's libraries are named."""
    if SANITIZERS != "none":
        raise Skip("a library with sanitizers is not for programs without")
    pc, root = installed()
    examples = next(root.rglob("examples/gate.c")).parent
    shutil.copy(pc.parent.parent / "libweft.a", weft.path("libweft.a"))
    flags = [flag for flag in pkg_config("--static", "--cflags", "--libs")
             if flag != f"-L{pc.parent.parent}"]
    gate = weft.path("gate")
    run(tool("cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", examples / "gate.c",
        "-L", weft.directory, *flags, "-o", gate)
    dynamic = run(tool("readelf"), "-d", gate)
    assert "libweft" not in dynamic and "libc.so" in dynamic, dynamic
    out = run(gate, examples / "gate.json", weft.path("run"), "train.steps=3")
    assert "step 3 of 3: loss" in out, out
    listed = run(tool("nm"), "-g", "--defined-only", weft.path("libweft.a"))
    names = [line.split()[2] for line in listed.splitlines() if len(line.split()) == 3]
    strangers = [name for name in names if not name.startswith("weft_")]
    assert len(names) > 500 and not strangers, strangers


@case
def a_program_without_shared_libraries_links(weft):
    """In the order that pkg-config gives. Debian has no oneDNN for it: an archive replaces it,
    and needs a symbol of the libraries after it."""
    if SANITIZERS != "none":
        raise Skip("sanitizers are shared libraries")
    pc, root = installed()
    shutil.copy(pc.parent.parent / "libweft.a", weft.path("libweft.a"))
    flags = [flag for flag in pkg_config("--static", "--cflags", "--libs")
             if flag != f"-L{pc.parent.parent}"]
    asked = run(tool("nm"), "-u", weft.path("libweft.a"))
    names = sorted(set(re.findall(r"\bdnnl_\w+", asked)))
    assert ("-ldnnl" in flags) == bool(names), (flags, names)
    stub = "#include <math.h>\n#include <pthread.h>\ndouble stub;\n" + "".join(
        f"int {name}(void) {{ return (int)lgamma(stub) + pthread_setconcurrency(0); }}\n"
        for name in names)
    source = weft.write("stub.c", "#define _XOPEN_SOURCE 700\n" + stub)
    run(tool("cc"), "-c", source, "-o", weft.path("stub.o"))
    run(tool("ar"), "rcs", weft.path("libdnnl.a"), weft.path("stub.o"))
    gate = weft.path("gate")
    run("cc", "-static", next(root.rglob("examples/gate.c")), "-L", weft.directory, *flags, "-o",
        gate)
    assert "There is no dynamic section" in run(tool("readelf"), "-d", gate)


@case
def the_header_is_clean(weft):
    """The header compiles alone as C and C++, in any standard with its integer types."""
    for compiler, language, standards in (("cc", "c", ("c99", "c11")),
                                          ("c++", "c++", ("c++11", "c++17"))):
        source = weft.write(f"header.{language}",
                            "#include <weft.h>\nint main() { struct weft *weft; struct weft_error "
                            "error; return weft_open(&weft, &error); }\n")
        for standard in standards:
            run(tool(compiler), "-x", language, f"-std={standard}", "-pedantic", "-Wall", "-Wextra",
                "-Wno-strict-prototypes", "-Werror", "-I", SOURCE / "include", "-c", source, "-o",
                weft.path("header.o"))


@case
def pages_and_completion_are_what_the_program_writes(weft):
    pc, root = installed()
    share = next(root.rglob("bin/weft")).parent.parent / "share"
    verbs = re.findall(r"^  (\w+) ", weft.expect(0, "help").split("\n\n")[2], re.M)
    assert len(verbs) > 15, verbs
    pages = {"weft.1": ["man"], **{f"weft-{verb}.1": ["man", verb] for verb in verbs}}
    for page, words in pages.items():
        assert (share / "man/man1" / page).read_text() == weft.expect(0, *words), page
    for shell, path in (("bash", "bash-completion/completions/weft"), ("zsh", "zsh/site-functions/_weft")):
        assert (share / path).read_text() == weft.expect(0, "completion", shell), path


main(sys.argv[4])
