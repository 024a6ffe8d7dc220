// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Rounds.h"

#include "support/ArgumentValue.h"

#include <charconv>
#include <fmt/format.h>

namespace mgpu::tune {

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

Result<std::vector<Round>> takeRounds(Options &options) {
  constexpr size_t most = 10'000;
  std::map<size_t, Round> found;
  auto take = [&](std::map<std::string, std::string> &from, auto member) {
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
  take(options.arguments, &Round::arguments);
  take(options.outputs, &Round::outputs);
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

Result<std::vector<ArgumentArray>> loadRound(const Program &program,
                                             const Round &round) {
  std::vector<ArgumentArray> values;
  for (const auto &[key, spec] : round.arguments) {
    MGPU_TRY_ASSIGN(const Binding *binding,
                    findBinding(program, key, "--arg", false));
    if (!binding->buffer || binding->role == "resident")
      return fail(ErrorKind::Usage,
                  fmt::format("--arg {}: '{}' is {}: it cannot change between "
                              "rounds",
                              key, binding->name,
                              binding->buffer
                                  ? "resident, which is loaded once"
                                  : "specialised, which decides the program"));
    auto array = loadArgument(spec, binding->elementType, binding->shape);
    if (!array)
      return failIn(fmt::format("--arg {}: ", key), array.error());
    values.push_back({binding, std::move(*array)});
  }
  return values;
}

} // namespace mgpu::tune
