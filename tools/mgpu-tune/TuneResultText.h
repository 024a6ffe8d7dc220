// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints what `tune` found, for people and as JSON.
#ifndef MGPU_TOOLS_MGPU_TUNE_TUNERESULTTEXT_H
#define MGPU_TOOLS_MGPU_TUNE_TUNERESULTTEXT_H

#include "pipeline/tune/Tune.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace mgpu::tools {

/// `path` is the database's, `planOf` the plan's verdict in one line.
nlohmann::json toJson(const tuner::TuningResult &result,
                      const LoadedProgram &program, const TuneContext &context,
                      const std::string &path, const std::string &planOf);
void print(const tuner::TuningResult &result, const LoadedProgram &program,
           const TuneContext &context, const std::string &path,
           const std::string &planOf);

} // namespace mgpu::tools

#endif // MGPU_TOOLS_MGPU_TUNE_TUNERESULTTEXT_H
