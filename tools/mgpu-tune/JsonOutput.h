// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_JSONOUTPUT_H
#define MGPU_TOOLS_MGPU_TUNE_JSONOUTPUT_H

// Prints the object of --json (docs/formats.md), with the version of its
// schema, on success and on failure.

#include "pipeline/program/Roles.h"
#include "planner/schedule/HostReplay.h"

#include <nlohmann/json_fwd.hpp>

namespace mgpu::tools {

/// Raised where a field changes its meaning or goes; not where one is added.
inline constexpr int jsonSchema = 2;

/// Prints it with all digits. A list is the field "results" of an object.
void printJson(nlohmann::json value);

/// {"kind": ..., "exit_code": ..., "message": ..., "location": ...}
nlohmann::json errorObject(const Error &error);

/// {"schema": 2, "ok": false, "error": {...}}, unless an object was printed,
/// which then has its own "ok".
void printJsonError(const Error &error);

/// Adds "predicted", where a replay on the host is.
void addPrediction(nlohmann::json &out,
                   const std::optional<planner::HostPrediction> &time);

/// Adds what uploadsText() says: "uploads", and "made_resident".
void addUploads(nlohmann::json &out, const pipeline::LoadedProgram &program,
                std::span<const double> durationsUs);

} // namespace mgpu::tools

#endif // MGPU_TOOLS_MGPU_TUNE_JSONOUTPUT_H
