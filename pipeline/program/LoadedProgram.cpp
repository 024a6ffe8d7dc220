// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/LoadedProgram.h"

#include "support/Spelling.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::pipeline {

using planner::ProgramArgument;

bool LoadedProgram::isOpaque() const {
  return std::any_of(
      dag.nodes.begin(), dag.nodes.end(), [](const planner::DagNode &node) {
        return std::holds_alternative<planner::OpaqueCall>(node.work);
      });
}

std::optional<LibraryFunction> libraryFunction(const std::string &call,
                                               const std::string &custom) {
  const size_t colon = custom.rfind(':');
  const std::string file = custom.substr(0, colon);
  const size_t name = file.rfind('/') + 1; // npos + 1 is 0
  if (!file.ends_with(".so") && file.find(".so.", name) == file.npos)
    return std::nullopt;
  return LibraryFunction{file, colon == custom.npos ? call
                                                    : custom.substr(colon + 1)};
}

Result<void> checkHasKernels(const LoadedProgram &program, const char *what) {
  if (!program.isOpaque())
    return {};
  return fail(ErrorKind::Unsupported,
              fmt::format("'{}' is known only by its costs and {}: give the "
                          "program it was made of",
                          program.from.file, what));
}

Result<const ProgramArgument *> findArgument(const planner::Program &program,
                                             const std::string &key,
                                             const char *option, bool results) {
  std::vector<std::string> known;
  for (const auto *list : {&program.arguments, &program.results}) {
    if (list == &program.results && !results)
      break;
    for (const ProgramArgument &argument : *list) {
      if (argument.name == key)
        return &argument;
      known.push_back(argument.name);
    }
  }
  for (size_t k = 0; k < program.arguments.size(); ++k)
    if (key == std::to_string(k))
      return &program.arguments[k];
  return fail(
      ErrorKind::Usage,
      fmt::format("{} {}: no such argument; there are: {}{}", option, key,
                  known.empty() ? "none"
                                : fmt::format("{}", fmt::join(known, ", ")),
                  didYouMean(key, known)));
}

} // namespace mgpu::pipeline
