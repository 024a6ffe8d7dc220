// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Arguments.h"

#include "support/ArgumentValue.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline {

static const char *madeUp(ElementType type) {
  switch (type) {
  case ElementType::I1:
  case ElementType::I8:
  case ElementType::I16:
  case ElementType::I32:
  case ElementType::I64:
  case ElementType::Index:
    return "zeros";
  default:
    return "random:1";
  }
}

Result<ArgumentArray>
loadArgumentArray(const planner::ProgramArgument &argument,
                  const std::string &key, const std::string &spec) {
  auto array = loadArgument(spec, argument.elementType, argument.shape);
  if (!array)
    return fail(array.error().kind,
                fmt::format("--arg {}: {}", key, array.error().message));
  return ArgumentArray{&argument, std::move(*array)};
}

Result<std::vector<ArgumentArray>>
loadArguments(const LoadedProgram &program, bool makeUp,
              const IsNeeded &isNeeded, std::vector<std::string> *madeUpNames) {
  std::vector<ArgumentArray> values;
  std::vector<std::string> made;
  auto isElsewhere = [&](const planner::ProgramArgument &argument) {
    return isNeeded && argument.buffer && !isNeeded(*argument.buffer);
  };
  for (const auto &[key, spec] : program.from.arguments) {
    MGPU_TRY_ASSIGN(const auto *argument,
                    findArgument(program, key, "--arg", false));
    if (!argument->buffer || // a scalar, used when it was specialised
        isElsewhere(*argument))
      continue;
    MGPU_TRY_ASSIGN(values.emplace_back(),
                    loadArgumentArray(*argument, key, spec));
  }
  for (size_t k = 0; k < program.arguments.size(); ++k) {
    const planner::ProgramArgument &argument = program.arguments[k];
    if (!program.needsValue[k] || isElsewhere(argument) ||
        std::any_of(values.begin(), values.end(), [&](const ArgumentArray &a) {
          return a.argument == &argument;
        }))
      continue;
    if (!makeUp)
      return fail(ErrorKind::Usage,
                  fmt::format("argument '{0}' is read but has no value; give "
                              "--arg {0}=VALUE, or --random",
                              argument.name));
    made.push_back(argument.name);
    MGPU_TRY_ASSIGN(values.emplace_back(),
                    loadArgumentArray(argument, argument.name,
                                      madeUp(argument.elementType)));
  }
  if (madeUpNames)
    *madeUpNames = std::move(made);
  else if (!made.empty())
    fmt::print(stderr,
               "mgpu-tune: no value for {}: random numbers are used "
               "(zeros for integers)\n",
               fmt::join(made, ", "));
  return values;
}

} // namespace mgpu::pipeline
