// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_IMPORTPROGRAM_H
#define MGPU_PIPELINE_COMPILER_IMPORTPROGRAM_H

#include "pipeline/LoadedProgram.h"

namespace mgpu::pipeline {

/// As Compiler::importProgram().
Result<LoadedProgram> importProgram(const ImportOptions &options,
                                    std::vector<Message> *messages);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_COMPILER_IMPORTPROGRAM_H
