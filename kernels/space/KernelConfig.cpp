// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/KernelConfig.h"

#include "support/JsonFields.h"
#include "support/Number.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::kernels {

static constexpr std::string_view parameterNames[numKernelParameters] = {
    "block_x", "block_y",    "block_z", "items",  "vector",
    "unroll",  "min_blocks", "tile_x",  "tile_y", "cluster_x"};

std::string_view toString(KernelParameter parameter) {
  return parameterNames[size_t(parameter)];
}

std::string toText(const KernelConfig &config) {
  std::string text;
  for (size_t k = 0; k < numKernelParameters; ++k)
    text += fmt::format("{}{}={}", k ? " " : "", parameterNames[k],
                        config.values[k]);
  for (uint32_t k = 0; k < config.numTunables; ++k)
    text += fmt::format("{}{}", k ? "," : " tunables=", config.tunables[k]);
  return text;
}

/// "16,4"; false where that is not a list of so many numbers below 2^32.
static bool readTunables(std::string_view text, KernelConfig &out) {
  out.tunables = {};
  for (out.numTunables = 0; out.numTunables < planner::mostKernelTunables;) {
    const size_t comma = text.find(',');
    auto value = numberFrom<uint32_t>(text.substr(0, comma));
    if (!value)
      return false;
    out.tunables[out.numTunables++] = *value;
    if (comma == text.npos)
      return true;
    text.remove_prefix(comma + 1);
  }
  return false;
}

Result<KernelConfig> parseKernelConfig(std::string_view text,
                                       KernelConfig base) {
  auto wrong = [](std::string_view word, const std::string &why) {
    return fail(ErrorKind::Usage, fmt::format("'{}' {}", word, why));
  };
  for (size_t begin; (begin = text.find_first_not_of(' ')) != text.npos;) {
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals),
                           value = word.substr(
                               std::min(equals, word.size() - 1) + 1);
    if (name == "tunables" && equals != word.npos) {
      if (!readTunables(value, base))
        return wrong(word, fmt::format("needs up to {} numbers below 2^32",
                                       planner::mostKernelTunables));
      continue;
    }
    auto at = std::ranges::find(parameterNames, name);
    if (equals == word.npos || at == std::end(parameterNames))
      return wrong(word, fmt::format("sets no parameter of a kernel; use NAME="
                                     "VALUE with the names {}",
                                     fmt::join(parameterNames, ", ")));
    auto number = numberFrom<uint32_t>(value);
    if (!number)
      return wrong(word, "needs a number below 2^32");
    base.values[size_t(at - std::begin(parameterNames))] = *number;
  }
  return base;
}

Formula Formula::tunable(size_t number) {
  Formula formula;
  formula.steps = {{Axis, int64_t(numKernelParameters + number)}};
  return formula;
}

Formula Formula::with(const Formula &b, Op op) && {
  steps.insert(steps.end(), b.steps.begin(), b.steps.end());
  steps.push_back({op, 0});
  return std::move(*this);
}

int64_t Formula::of(const KernelConfig &config) const {
  constexpr size_t mostWaiting = 16,
                   most = numKernelParameters + planner::mostKernelTunables;
  std::array<int64_t, mostWaiting> waiting{INT64_MAX};
  size_t count = 0;
  for (auto [op, value] : steps) {
    if (op == Number || op == Axis) {
      if (count == mostWaiting || (op == Axis && uint64_t(value) >= most))
        return INT64_MAX;
      waiting[count++] = op == Number ? value : config.at(size_t(value));
      continue;
    }
    if (count < 2 || (op == RoundUp && waiting[count - 1] <= 0))
      return INT64_MAX;
    const int64_t b = waiting[--count];
    int64_t &a = waiting[count - 1];
    if (op == Add        ? __builtin_add_overflow(a, b, &a)
        : op == Multiply ? __builtin_mul_overflow(a, b, &a)
                         : __builtin_add_overflow(a, (b - a % b) % b, &a))
      return INT64_MAX;
  }
  return waiting[0];
}

void fields(JsonFields &f, Formula &formula) { f("steps", formula.steps); }

} // namespace mgpu::kernels
