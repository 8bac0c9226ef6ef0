# SPDX-License-Identifier: Apache-2.0
"""Builds the package by setuptools in a copy of this folder: setuptools leaves build/ and weft.egg-info in its tree."""
import atexit
import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  (the hooks that need no copy)

atexit.register(shutil.rmtree, Path(__file__).parent / "__pycache__", ignore_errors=True)


@contextlib.contextmanager
def _in_a_copy():
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        leave = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
        os.chdir(shutil.copytree(here, os.path.join(folder, "python"), ignore=leave))
        try:
            yield
        finally:
            os.chdir(here)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    wheels, metadata = (path and os.path.abspath(path) for path in (wheel_directory, metadata_directory))
    with _in_a_copy():
        return build_meta.build_wheel(wheels, config_settings, metadata)


def build_sdist(sdist_directory, config_settings=None):
    target = os.path.abspath(sdist_directory)
    with _in_a_copy():
        return build_meta.build_sdist(target, config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    target = os.path.abspath(metadata_directory)
    with _in_a_copy():
        return build_meta.prepare_metadata_for_build_wheel(target, config_settings)


def get_requires_for_build_wheel(config_settings=None):
    with _in_a_copy():
        return build_meta.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings=None):
    with _in_a_copy():
        return build_meta.get_requires_for_build_sdist(config_settings)
