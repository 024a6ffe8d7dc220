# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PEP 517 backend of the package: it needs nothing but Python, and so no network.

The wheel is the package and libmgt.so, which CMake has built or installed: the one that MGPU_LIBRARY
names, or the one that belongs to this folder where it was installed.
"""

import base64
import hashlib
import os
import sys
import sysconfig
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True  # nothing is left where it was installed


def _library():
    sys.path.insert(0, HERE)
    from mgpu import _library as library  # noqa: E402
    path = library.find()
    if not os.path.isabs(path):
        raise SystemExit("mgpu: libmgt.so is not here: install mgpu with CMake and use its share/mgpu/python, "
                         "or name the library in MGPU_LIBRARY")
    return os.path.realpath(path), library.version_of(path)


def get_requires_for_build_wheel(config_settings=None):
    return []


def _metadata(version):
    return {"METADATA": f"Metadata-Version: 2.1\nName: mgpu\nVersion: {version}\n"
                        "Summary: Builds, plans and replays multi-GPU graphs\n"
                        "License: Apache-2.0 WITH LLVM-exception\nRequires-Python: >=3.9\n",
            "WHEEL": "Wheel-Version: 1.0\nGenerator: mgpu\nRoot-Is-Purelib: false\n"
                     f"Tag: py3-none-{_platform()}\n"}


def _platform():
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    path, version = _library()
    files = {}
    for name in sorted(os.listdir(os.path.join(HERE, "mgpu"))):
        if name.endswith((".py", ".typed")):
            with open(os.path.join(HERE, "mgpu", name), "rb") as file:
                files["mgpu/" + name] = file.read()
    with open(path, "rb") as file:
        files["mgpu/libmgt.so.1"] = file.read()
    info = f"mgpu-{version}.dist-info"
    for name, text in _metadata(version).items():
        files[f"{info}/{name}"] = text.encode()
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}")
    files[f"{info}/RECORD"] = ("\n".join([*rows, f"{info}/RECORD,,"]) + "\n").encode()
    wheel = f"mgpu-{version}-py3-none-{_platform()}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return wheel
