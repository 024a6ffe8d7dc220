#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the packages of a build, unpacks them into a clean root, and uses what is there.

Usage: packages.py BUILD_DIR SOURCE_DIR
"""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from install import check_command, check_consumers, files_in, run  # noqa: E402

# Where a package may put files.
PATHS = re.compile(r"usr/(bin/mgpu-|include/mgt\.|lib(/[\w-]+)?/(libmgt\.so|cmake/mgpu/|pkgconfig/mgpu\.pc)|share/(doc/)?mgpu|"
                   r"share/(man/man1|bash-completion/completions|zsh/site-functions|fish/vendor_completions\.d)/_?mgpu-tune)")


def main():
    build, source = map(os.path.realpath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        run("cpack", "--config", os.path.join(build, "CPackConfig.cmake"), "-G", "DEB", "-B", folder,
            "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none", cwd=folder)
        packages = sorted(name for name in os.listdir(folder) if name.endswith(".deb"))
        hasTools = any(name.startswith("mgpu-tools_") for name in packages)
        assert packages[0].startswith("mgpu-runtime_") and len(packages) == 1 + hasTools, packages
        root = os.path.join(folder, "root")
        for name in packages:
            package = os.path.join(folder, name)
            needs = run("dpkg-deb", "-f", package, "Depends")
            assert "libc6" in needs and ("libmlir" in needs.lower()) == name.startswith("mgpu-tools_"), needs
            run("dpkg-deb", "-x", package, root)
        strange = [path for path in (os.path.relpath(path, root) for path in files_in(root)) if not PATHS.match(path)]
        assert not strange, strange
        check_consumers(os.path.join(root, "usr"), source, folder)
        check_command(os.path.join(root, "usr"))
        print(f"{', '.join(packages)}: unpacked and used")


if __name__ == "__main__":
    main()
