# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PEP 517 backend of the package: it needs nothing but Python, and so no network.

The wheel is the package and libmgt.so, which CMake has built or installed: the one that MGPU_LIBRARY
names, or the one that belongs to this folder where it was installed; and libmgpu_pjrt.so, if it is beside it. Run as a program, it makes the
wheel that holds mgpu-tune with its compiler, too, for machines with a C library as new as this one's:

    build_wheel_of_mgpu.py FOLDER PROGRAM
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


def _metadata(version, tag, has_command):
    files = {"METADATA": f"Metadata-Version: 2.1\nName: mgpu\nVersion: {version}\n"
                         "Summary: Builds, plans and replays multi-GPU graphs\n"
                         "License: Apache-2.0 WITH LLVM-exception\nRequires-Python: >=3.9\n",
             "WHEEL": f"Wheel-Version: 1.0\nGenerator: mgpu\nRoot-Is-Purelib: false\nTag: {tag}\n"}
    if has_command:
        files["entry_points.txt"] = "[console_scripts]\nmgpu-tune = mgpu._commands:main\n"
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _build(wheel_directory, "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_"))


def _build(folder, tag, program=None):
    path, version = _library()
    files = {}
    for name in sorted(os.listdir(os.path.join(HERE, "mgpu"))):
        if name.endswith((".py", ".typed")):
            with open(os.path.join(HERE, "mgpu", name), "rb") as file:
                files["mgpu/" + name] = file.read()
    with open(path, "rb") as file:
        files["mgpu/libmgt.so.1"] = file.read()
    plugin = os.path.join(os.path.dirname(path), "libmgpu_pjrt.so")
    if os.path.exists(plugin):
        with open(plugin, "rb") as file:
            files["mgpu/libmgpu_pjrt.so"] = file.read()
    command = "mgpu/bin/mgpu-tune"
    if program:
        with open(program, "rb") as file:
            files[command] = file.read()
    info = f"mgpu-{version}.dist-info"
    for name, text in _metadata(version, tag, bool(program)).items():
        files[f"{info}/{name}"] = text.encode()
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}")
    files[f"{info}/RECORD"] = ("\n".join([*rows, f"{info}/RECORD,,"]) + "\n").encode()
    wheel = f"mgpu-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100755 if name == command else 0o100644) << 16  # a regular file
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, compresslevel=9)
    return wheel


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    # No symbol that was linked here is of a newer C library than this machine's.
    release = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    print(_build(sys.argv[1], f"py3-none-manylinux_{release}_{os.uname().machine}", sys.argv[2]))
