#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Installs a build into a clean prefix, moves the prefix, and uses what is in it: a consumer by
find_package, one by pkg-config, mgpu-tune. Then what was installed again is uninstalled.

Usage: install.py BUILD_DIR SOURCE_DIR
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def files_in(folder):
    return [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]


def find(folder, name):
    found = [path for path in files_in(folder) if os.path.basename(path) == name]
    assert len(found) == 1, f"{name}: {found} under {folder}"
    return found[0]


# What examples/embed/replay.c prints of tests/bundles/ops.mgpu: its arrays are 0, 1, 2, ...
EXPECTED = ["gathered[0] = 0", "maximum[0] = 12", "minimum[0] = 0", "product[0] = 0", "broadcasted[0] = 4", "uneven[0] = 0",
            "chained[0] = 1"]


def check_consumers(prefix, source, folder):
    """Builds examples/embed/replay.c against the files under `prefix`, in two ways."""
    examples, bundle = os.path.join(source, "examples/embed"), os.path.join(source, "tests/bundles/ops.mgpu")
    outputs = {}
    build = os.path.join(folder, "consumer")
    run("cmake", "-S", os.path.join(source, "tests/install/consumer"), "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DEXAMPLES={examples}")
    run("cmake", "--build", build)
    outputs["find_package"] = run(os.path.join(build, "replay"), bundle)
    database = {"MGPU_DB": os.path.join(folder, "kernels.db")}
    built = run(os.path.join(build, "step"), env={**os.environ, **database})
    assert built == "sum = 6 6 ... 6\n", built
    pc = os.path.dirname(find(prefix, "mgpu.pc"))
    env = {**os.environ, "PKG_CONFIG_PATH": pc, "PKG_CONFIG_LIBDIR": pc}
    flags = run("pkg-config", "--cflags", "--libs", "mgpu", env=env).split()
    program = os.path.join(folder, "replay")
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", os.path.join(examples, "replay.c"), *flags, "-o", program)
    library = os.path.realpath(os.path.join(os.path.dirname(pc)))
    outputs["pkg-config"] = run(program, bundle, "host:4", env={**os.environ, "LD_LIBRARY_PATH": library})
    for how, output in outputs.items():
        assert sorted(output.splitlines()) == sorted(EXPECTED), f"{how}: {output}"


def check_python(prefix, source, folder):
    """In a fresh environment without a network; then with no installation, from where it lies."""
    example, package = os.path.join(source, "examples/embed/step.py"), os.path.join(prefix, "share/mgpu/python")
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MGPU_LIBRARY")}
    clean.update(MGPU_DB=os.path.join(folder, "kernels.db"), PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_CACHE_DIR="1", PYTHONDONTWRITEBYTECODE="1")
    environment = os.path.join(folder, "venv")
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = os.path.join(environment, "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", python]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0:  # older than 22.3, or not there
        run(python, "-m", "ensurepip")
        pip = [python, "-m", "pip"]
    run(*pip, "install", "--no-index", package, env=clean)
    expected = "[10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0]\n"
    assert run(python, example, env=clean) == expected
    said = run(python, "-m", "mgpu", "--version", env=clean)
    assert os.path.join(folder, "venv") in said, said
    assert run(sys.executable, example, env={**clean, "PYTHONPATH": package}) == expected


def check_command(prefix, source):
    tune = os.path.join(prefix, "bin/mgpu-tune")
    version = run(tune, "--version")
    assert re.fullmatch(r"mgpu-tune \d+\.\d+\.\d+ \(commit ([0-9a-f]{12}|unknown)\)\n"
                        r"LLVM: (22\.\S+|none)\nCUDA headers: (\d+\.\d+|none)\n", version), version
    compiles = "LLVM: none" not in version
    if compiles:  # which another program does
        assert ": ok: " in run(tune, "check", os.path.join(source, "examples/saxpy/saxpy.mlir"), "--arg", "a=2")
    return compiles


def check_pjrt(library, source, folder, compiles=True):
    """A client of PJRT has its program compiled by the command that the plugin finds where both were put."""
    client = os.path.join(folder, "pjrt_client")
    run("cc", "-std=c11", "-I", os.path.join(source, "pipeline/pjrt"), os.path.join(source, "examples/pjrt/add.c"), "-ldl", "-o", client)
    clean = {"PATH": "/nowhere", "HOME": folder, "MGPU_PJRT_CACHE": "off", "MGPU_KERNEL_CACHE": "off"}
    done = subprocess.run([client, library], capture_output=True, text=True, timeout=60, env=clean)
    assert done.stdout == "2 4 6 8\n" if compiles else "compiler" in done.stderr, done.stderr


def complete(script, *words):
    """What bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in words)
    found = run("bash", "-c", f"source '{script}'; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _mgpu_tune; echo ${{COMPREPLY[@]}}")
    return found.split()


def check_pages(prefix):
    """The manual page and the completions say what the command line has."""
    page, bash = find(prefix, "mgpu-tune.1"), os.path.join(prefix, "share/bash-completion/completions/mgpu-tune")
    assert complete(bash, "mgpu-tune", "ca") == ["calibrate"]
    assert complete(bash, "mgpu-tune", "db", "li") == ["list"]
    assert complete(bash, "mgpu-tune", "plan", "x.mlir", "--strea") == ["--streams"]
    assert complete(bash, "mgpu-tune", "plan", "--scheduler", "se") == ["serial"]
    assert "--scheduler" not in complete(bash, "mgpu-tune", "report", "--")
    assert prefix in complete(bash, "mgpu-tune", "run", prefix)
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww", page], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert "--scheduler" in done.stdout and "EXIT STATUS" in re.sub("\x1b\\[[0-9;]*m|.\x08", "", done.stdout), done.stdout[:2000]
    for shell, name in (("zsh", "_mgpu-tune"), ("fish", "mgpu-tune.fish")):
        script = find(prefix, name)
        if shutil.which(shell):
            run(shell, "-n", script)


def check_uninstall(build, source, folder):
    prefix = os.path.join(folder, "again")
    run("cmake", "--install", build, "--prefix", prefix)
    with open(os.path.join(build, "install_manifest.txt"), encoding="utf-8") as manifest:
        assert all(line.startswith(prefix + "/") for line in manifest), "a file outside the prefix was installed"
    stranger = os.path.join(prefix, "lib", "another.txt")
    with open(stranger, "w", encoding="utf-8") as file:
        file.write("another's\n")
    run("cmake", f"-DFOLDER={build}", "-P", os.path.join(source, "cmake/Uninstall.cmake"))
    assert files_in(prefix) == [stranger], files_in(prefix)
    ours = [root for root, _, _ in os.walk(prefix) if "mgpu" in os.path.relpath(root, prefix)]
    assert not ours, ours


def main():
    build, source = map(os.path.realpath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        first, prefix = os.path.join(folder, "first"), os.path.join(folder, "moved")
        run("cmake", "--install", build, "--prefix", first)
        os.rename(first, prefix)
        check_consumers(prefix, source, folder)
        check_pjrt(find(prefix, "libmgpu_pjrt.so"), source, folder, check_command(prefix, source))
        check_pages(prefix)
        check_python(prefix, source, folder)
        check_uninstall(build, source, folder)
    print("consumers of the installed library replay a bundle; nothing is left")


if __name__ == "__main__":
    main()
