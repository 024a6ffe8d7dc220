// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_VERSION_H
#define MGPU_PIPELINE_PROGRAM_VERSION_H

#include <string>
#include <string_view>

namespace mgpu::pipeline {

/// "0.1.0"
std::string_view version();

/// The text of --version: the program's name, version and commit, then what it
/// was built with. `llvm` is LLVM's version; "" without the compiler half.
std::string versionText(std::string_view program, std::string_view llvm);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_VERSION_H
