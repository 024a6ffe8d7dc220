// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/JsonOutput.h"

#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::pipeline {

using nlohmann::json;

/// Sixteen digits of a time say nothing that six do not.
static void roundNumbers(json &value) {
  if (value.is_structured()) {
    for (json &each : value)
      roundNumbers(each);
  } else if (value.is_number_float()) {
    value = std::strtod(fmt::format("{:.6g}", value.get<double>()).c_str(),
                        nullptr);
  }
}

/// A command prints one object, which says what failed where it prints it.
static bool isPrinted = false;

void printJson(json value) {
  isPrinted = true;
  roundNumbers(value);
  if (!value.is_object())
    value = json{{"results", std::move(value)}};
  value["schema"] = jsonSchema;
  value.emplace("ok", true); // unless it says otherwise
  fmt::print("{}\n", value.dump(2, ' ', false, json::error_handler_t::replace));
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

} // namespace mgpu::pipeline
