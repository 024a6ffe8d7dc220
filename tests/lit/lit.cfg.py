# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Run by `ctest -R lit`, or `lit build/<preset>/tests/lit` for less.
import os
import sys

import lit.formats

config.name = "mgpu"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.mgpu_exec_root

# FileCheck, not and split-file are LLVM's.
config.environment["PATH"] = os.pathsep.join(
    [config.mgpu_bin_dir, config.llvm_tools_dir, config.environment["PATH"]]
)

# The database lies here, and not in the user's home.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.mgpu_exec_root, "cache")
config.environment["XDG_STATE_HOME"] = os.path.join(config.mgpu_exec_root, "state")

# Full paths, so that a tool that was not built fails by name and none of
# another build is found. Part of a path or of a longer name is left alone.
for tool in ("mgpu-opt", "mgpu-tune", "mgpu-tune-runtime", "mgpu-lsp-server"):
    config.substitutions.append(
        (
            r"(?<![\w/.-])%s(?![\w.-])" % tool,
            os.path.join(config.mgpu_bin_dir, tool),
        )
    )
config.substitutions.append(("%{root}", config.mgpu_source_root))
config.substitutions.append(("%python", sys.executable))

# Where NVRTC must be there (.ci/run), its tests fail rather than be left out.
if config.mgpu_has_nvrtc or os.environ.get("MGPU_REQUIRE_NVRTC"):
    config.available_features.add("nvrtc")
