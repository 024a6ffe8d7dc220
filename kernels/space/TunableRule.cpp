// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/TunableRule.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

namespace mgpu::kernels {

namespace {

class Reader {
public:
  Reader(std::string_view text,
         std::span<const planner::KernelTunable> tunables)
      : text(text), rest(text), tunables(tunables) {}

  Result<KernelConstraint> run() {
    KernelConstraint out;
    out.rule = std::string(text);
    MGPU_TRY_ASSIGN(out.left, sum());
    const bool isRemainder = take("%");
    if (!isRemainder && take("<="))
      out.relation = Relation::AtMost;
    else if (!isRemainder && take("=="))
      out.relation = Relation::Equal;
    else if (!isRemainder)
      return wrong("has no <=, == or % where one is due");
    MGPU_TRY_ASSIGN(out.right, sum());
    if (isRemainder) {
      out.relation = Relation::MultipleOf;
      if (!take("==") || !take("0"))
        return wrong("has % and does not end with == 0");
    }
    skip();
    if (!rest.empty())
      return wrong(fmt::format("goes on with '{}'", rest));
    out.reason = fmt::format("the kernel's rule '{}' does not hold: its sides "
                             "are $left and $right",
                             text);
    return out;
  }

private:
  tl::unexpected<Error> wrong(std::string why) const {
    std::vector<std::string> names;
    for (const planner::KernelTunable &tunable : tunables)
      names.push_back(tunable.name);
    return fail(ErrorKind::Usage,
                fmt::format("the rule '{}' {}: write A * B <= 64, A == 2 * B "
                            "or A % B == 0, with the tunables {}",
                            text, why, fmt::join(names, ", ")));
  }
  void skip() {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  bool take(std::string_view word) {
    skip();
    if (!rest.starts_with(word))
      return false;
    rest.remove_prefix(word.size());
    return true;
  }
  Result<Formula> sum() {
    MGPU_TRY_ASSIGN(Formula out, product());
    while (take("+")) {
      MGPU_TRY_ASSIGN(const Formula next, product());
      out = std::move(out) + next;
    }
    return out;
  }
  Result<Formula> product() {
    MGPU_TRY_ASSIGN(Formula out, factor());
    while (take("*")) {
      MGPU_TRY_ASSIGN(const Formula next, factor());
      out = std::move(out) * next;
    }
    return out;
  }
  Result<Formula> factor() {
    skip();
    const size_t end = std::min(rest.find_first_of(" *+%<="), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    for (size_t k = 0; k < tunables.size(); ++k)
      if (tunables[k].name == word)
        return Formula::tunable(k);
    uint32_t number = 0;
    const auto [stop, fault] =
        std::from_chars(word.data(), word.data() + word.size(), number);
    if (word.empty() || fault != std::errc() ||
        stop != word.data() + word.size())
      return wrong(fmt::format("has '{}', which is neither a number nor a "
                               "tunable",
                               word));
    return Formula(int64_t(number));
  }

  const std::string_view text;
  std::string_view rest;
  const std::span<const planner::KernelTunable> tunables;
};

} // namespace

Result<KernelConstraint>
parseRule(std::string_view text,
          std::span<const planner::KernelTunable> tunables) {
  return Reader(text, tunables).run();
}

} // namespace mgpu::kernels
