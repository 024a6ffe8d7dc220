// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_BUILD_MAKEBUNDLE_H
#define MGPU_PIPELINE_BUILD_MAKEBUNDLE_H

// From a loaded program to a bundle: planned, and built for several machines.

#include "pipeline/build/Prepare.h"

namespace mgpu::pipeline {

struct BundleOptions {
  std::vector<std::string>
      levels;                     ///< CPU levels of the host's kernels, or none
  std::vector<std::string> archs; ///< what cubins are for: "sm_90"
  uint32_t alternatives = 0;      ///< more variants of each host kernel
  /// The beginnings of paths in the bundle, by those that they had.
  std::map<std::string, std::string> prefixMap = {};
};

struct MadeBundle {
  capture::BundleContents contents;
  bool isTuned = false;           ///< with the configuration that `tune` found
  std::vector<std::string> notes; ///< what it lacks, and why
};
/// Makes the contents of the program's bundle. The program is not from a
/// bundle.
Result<MadeBundle> makeBundle(LoadedProgram program,
                              const PrepareOptions &prepare,
                              const BundleOptions &options);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_BUILD_MAKEBUNDLE_H
