// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Arguments.h"

#include "support/ArgumentValue.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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

/// N of "K@N", from 2 on; 0 of any other key.
static size_t roundOf(const std::string &key) {
  const size_t at = key.rfind('@');
  if (at == std::string::npos)
    return 0;
  size_t number = 0;
  const char *last = key.data() + key.size();
  auto [end, error] = std::from_chars(key.data() + at + 1, last, number);
  return error == std::errc() && end == last && number >= 2 ? number : 0;
}

Result<std::vector<Round>> takeRounds(Pairs &arguments, Pairs &outputs) {
  constexpr size_t most = 10'000;
  std::map<size_t, Round> found;
  auto take = [&](Pairs &from, auto member) {
    for (auto at = from.begin(); at != from.end();) {
      const size_t number = roundOf(at->first);
      if (number == 0) {
        ++at;
        continue;
      }
      (found[number].*member)
          .emplace(at->first.substr(0, at->first.rfind('@')), at->second);
      at = from.erase(at);
    }
  };
  take(arguments, &Round::arguments);
  take(outputs, &Round::outputs);
  std::vector<Round> rounds;
  for (auto &[number, round] : found) {
    if (number > most)
      return fail(ErrorKind::Usage,
                  fmt::format("round {}: there are at most {}", number, most));
    if (number != rounds.size() + 2)
      return fail(ErrorKind::Usage,
                  fmt::format("round {} is given and round {} is not: number "
                              "them from 2 on",
                              number, rounds.size() + 2));
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Result<std::vector<ArgumentArray>> loadRound(const LoadedProgram &program,
                                             const Round &round,
                                             const IsNeeded &isNeeded) {
  std::vector<ArgumentArray> values;
  for (const auto &[key, spec] : round.arguments) {
    MGPU_TRY_ASSIGN(const auto *argument,
                    findArgument(program, key, "--arg", false));
    if (!argument->buffer || argument->role == planner::ArgumentRole::Resident)
      return fail(ErrorKind::Usage,
                  fmt::format("--arg {}: '{}' is {}: it cannot change between "
                              "rounds",
                              key, argument->name,
                              argument->buffer
                                  ? "resident, which is loaded once"
                                  : "specialised, which decides the program"));
    if (isNeeded && !isNeeded(*argument->buffer))
      continue;
    MGPU_TRY_ASSIGN(values.emplace_back(),
                    loadArgumentArray(*argument, key, spec));
  }
  return values;
}

} // namespace mgpu::pipeline
