// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_JSONOUTPUT_H
#define MGPU_TOOLS_MGPU_TUNE_JSONOUTPUT_H

// What --json prints (docs/cli.md): one object, with the version of its
// schema, on success and on failure.

#include "support/Result.h"

#include <nlohmann/json_fwd.hpp>

namespace mgpu::pipeline {

/// Raised where a field changes its meaning or goes; not where one is added.
inline constexpr int jsonSchema = 1;

/// Prints it with six digits of each number that is not whole. A list is the
/// field "results" of an object.
void printJson(nlohmann::json value);

/// {"kind": ..., "exit_code": ..., "message": ..., "location": ...}
nlohmann::json errorObject(const Error &error);

/// {"schema": 1, "ok": false, "error": {...}}, unless an object was printed,
/// which then has its own "ok".
void printJsonError(const Error &error);

} // namespace mgpu::pipeline

#endif // MGPU_TOOLS_MGPU_TUNE_JSONOUTPUT_H
