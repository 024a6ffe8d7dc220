// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/JsonOutput.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::tools {

using nlohmann::json;

/// A command prints one object, which says what failed where it prints it.
static bool isPrinted = false;

void printJson(json value) {
  isPrinted = true;
  if (!value.is_object())
    value = json{{"results", std::move(value)}};
  value["schema"] = jsonSchema;
  value.emplace("ok", true); // unless it says otherwise
  fmt::print("{}\n", value.dump(2, ' ', false, json::error_handler_t::replace));
}

void addUploads(json &out, const LoadedProgram &program,
                std::span<const double> durationsUs) {
  const Uploads uploads = uploadsOf(program, durationsUs);
  out["uploads"] = {{"arguments", uploads.arguments},
                    {"bytes", uploads.bytes},
                    {"us", uploads.us}};
  out["made_resident"] = {{"arguments", program.madeResident.arguments},
                          {"bytes", program.madeResident.bytes}};
}

void addPrediction(json &out,
                   const std::optional<planner::HostPrediction> &time) {
  if (time)
    out["predicted"] = {{"us", time->us},
                        {"error", time->error},
                        {"low_us", time->lowUs()},
                        {"high_us", time->highUs()},
                        {"threads", time->threads}};
}

static const char *nameOf(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::Invalid:
    return "invalid";
  case ErrorKind::Usage:
    return "usage";
  case ErrorKind::Absent:
    return "absent";
  case ErrorKind::Internal:
    return "internal";
  case ErrorKind::Unsupported:
    return "unsupported";
  }
  return "internal";
}

json errorObject(const Error &error) {
  return {{"kind", nameOf(error.kind)},
          {"exit_code", int(error.kind)},
          {"message", error.message},
          {"location", error.location}};
}

void printJsonError(const Error &error) {
  if (!isPrinted)
    printJson({{"ok", false}, {"error", errorObject(error)}});
}

} // namespace mgpu::tools
