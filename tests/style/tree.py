# SPDX-License-Identifier: Apache-2.0
"""Files of a source tree, with git or without, as in an unpacked archive."""
import fnmatch
import os
import subprocess
from pathlib import Path


def ignored_names(root):
    """Patterns of .gitignore, each of one name."""
    ignore = root / ".gitignore"
    lines = ignore.read_text(encoding="utf-8").splitlines() if ignore.is_file() else []
    return [line.strip("/") for line in lines if line and not line.startswith("#")]


def is_build_folder(path):
    return (path / "meson-private").is_dir() or (path / "build.ninja").is_file()


def walk_files(root):
    """Without git: leaves out build folders, whatever they are called, and hidden and ignored names."""
    ignored = [".*", *ignored_names(root)]
    for folder, folders, names in os.walk(root):
        def is_kept(name):
            return not any(fnmatch.fnmatch(name, pattern) for pattern in ignored)
        folders[:] = [name for name in folders if is_kept(name) and not is_build_folder(Path(folder, name))]
        yield from (Path(folder, name) for name in names if is_kept(name))


def list_files(root):
    """Sorted paths of the files that git tracks or would track."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], capture_output=True,
                            text=True, check=False).stdout.splitlines()
    paths = [root / line for line in listed] or walk_files(root)
    return sorted(path for path in paths if path.is_file())
