// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_BUILDERHANDLE_H
#define MGPU_PIPELINE_C_BUILDERHANDLE_H

// The object behind an mgt_builder, and helpers that its calls share.

#include "pipeline/c/Calls.h"
#include "planner/record/ProgramBuilder.h"

struct mgt_builder {
  mgt_builder(std::string name, uint32_t devices)
      : program(std::move(name), devices) {}
  mgpu::planner::ProgramBuilder program;
  std::string error, text;
};

namespace mgpu::pipeline {

inline tl::unexpected<Error> usage(std::string text) {
  return fail(ErrorKind::Usage, std::move(text));
}

inline Result<void>
requireNotNull(const char *call, std::initializer_list<const void *> pointers) {
  for (const void *pointer : pointers)
    if (!pointer)
      return usage(fmt::format("{}: a pointer that it needs is null", call));
  return {};
}

/// Runs a call on a builder, which has its sentence where it fails.
template <typename Call>
mgt_status onBuilder(mgt_builder *builder, const char *name, Call call) {
  return guarded(builder ? &builder->error : nullptr, [&]() -> Result<void> {
    if (!builder)
      return usage(fmt::format("{}: builder must not be null", name));
    return call();
  });
}

inline std::string textOf(const char *text) { return text ? text : ""; }

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_C_BUILDERHANDLE_H
