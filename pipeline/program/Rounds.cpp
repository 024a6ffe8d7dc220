// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Rounds.h"

#include <charconv>
#include <fmt/format.h>

namespace mgpu::pipeline {

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
