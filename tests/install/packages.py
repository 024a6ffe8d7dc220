#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the packages of a build, installs them into a clean root by dpkg, uses what is there, and removes
them: nothing is left. And makes its tarball, which is used where it is unpacked.

Usage: packages.py BUILD_DIR SOURCE_DIR deb|tarball [static]
"""

import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from install import check_command, check_consumers, check_pjrt, check_python, files_in, find, run  # noqa: E402

# Where a package may put files.
PATHS = re.compile(r"usr/(bin/mgpu-|lib/mgpu/mgpu-(mpi-|tune-compiler)|include/mgt\.|lib(/[\w-]+)?/(libmg(t|pu_pjrt)\.so|cmake/mgpu/|pkgconfig/mgpu\.pc)|share/(doc/)?mgpu|"
                   r"share/(man/man1|bash-completion/completions|zsh/site-functions|fish/vendor_completions\.d)/_?mgpu-tune)")


def dpkg(root, *words):
    """dpkg on a root of its own. Who is not the superuser, or has no fakeroot, cannot give files to him."""
    fake = [] if os.geteuid() == 0 else ["fakeroot"]
    return run(*fake, "dpkg", f"--root={root}", "--force-not-root,depends,script-chrootless", f"--log={root}/log", *words)


def make_root(folder):
    root = os.path.join(folder, "root")
    for part in ("info", "updates", "triggers"):
        os.makedirs(os.path.join(root, "var/lib/dpkg", part))
    for part in ("status", "available"):
        with open(os.path.join(root, "var/lib/dpkg", part), "w", encoding="utf-8"):
            pass
    return root


def check_debs(build, source, folder):
    run("cpack", "--config", os.path.join(build, "CPackConfig.cmake"), "-G", "DEB", "-B", folder,
        "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none", cwd=folder)
    packages = sorted(name for name in os.listdir(folder) if name.endswith(".deb"))
    hasTools = any(name.startswith("mgpu-tools_") for name in packages)
    assert packages[0].startswith("mgpu-runtime_") and len(packages) == 1 + hasTools, packages
    for name in packages:
        needs = run("dpkg-deb", "-f", os.path.join(folder, name), "Depends")
        assert "libc6" in needs and not re.search("mlir|llvm|lld", needs.lower()), needs
    root = make_root(folder)
    isInstalled = os.geteuid() == 0 or shutil.which("fakeroot") is not None
    if isInstalled:
        dpkg(root, "--install", *(os.path.join(folder, name) for name in packages))
    else:
        for name in packages:
            run("dpkg-deb", "-x", os.path.join(folder, name), root)
    prefix = os.path.join(root, "usr")
    strange = [path for path in (os.path.relpath(path, root) for path in files_in(prefix)) if not PATHS.match(path)]
    assert not strange, strange
    check_consumers(prefix, source, folder)
    check_pjrt(find(prefix, "libmgpu_pjrt.so"), source, folder, check_command(prefix, source))
    check_python(prefix, source, folder)
    if isInstalled:
        dpkg(root, "--purge", *(name.split("_")[0] for name in reversed(packages)))
        assert not os.path.exists(prefix), files_in(prefix)
    return ", ".join(packages)


def check_tarball(build, source, folder, isStatic):
    run("cpack", "--config", os.path.join(build, "CPackConfig.cmake"), "-G", "TGZ", "-B", folder, cwd=folder)
    name = next(name for name in os.listdir(folder) if name.endswith(".tar.gz"))
    there = os.path.join(folder, "some where")  # with a space
    os.mkdir(there)
    run("tar", "-xf", os.path.join(folder, name), "-C", there)
    moved = os.path.join(folder, "moved")
    os.rename(os.path.join(there, os.listdir(there)[0], "usr"), moved)
    strange = [path for path in files_in(moved) if not PATHS.match("usr/" + os.path.relpath(path, moved))]
    assert not strange, strange
    if isStatic:
        for path in files_in(moved):
            if os.path.basename(path) == "mgpu-tune" and os.path.dirname(path).endswith("bin") or (".so." in path or "pjrt" in path) and not os.path.islink(path):
                needed = set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", path)))
                assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, f"{path} needs {needed}"
    check_consumers(moved, source, folder)
    check_pjrt(find(moved, "libmgpu_pjrt.so"), source, folder, check_command(moved, source))
    check_python(moved, source, folder)
    return name


def main():
    build, source = map(os.path.realpath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[3] == "deb":
            print(check_debs(build, source, folder), "installed, used and removed")
        else:
            print(check_tarball(build, source, folder, "static" in sys.argv[4:]), "unpacked, moved and used")


if __name__ == "__main__":
    main()
