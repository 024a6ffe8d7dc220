// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/SpaceText.h"

#include "support/JsonFields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace mgpu::kernels {

static void fields(JsonFields &f, KernelAxis &axis) {
  f("name", axis.name);
  f("values", axis.values);
  f.require(!axis.values.empty(), "values");
  f("reason", axis.reason);
}

static void fields(JsonFields &f, KernelConstraint &constraint) {
  auto relation = uint8_t(constraint.relation);
  f("rule", constraint.rule);
  f("left", constraint.left);
  f("relation", relation);
  f.require(relation <= uint8_t(Relation::ZeroTogether), "relation");
  f("right", constraint.right);
  f("reason", constraint.reason);
  f("binds_defaults", constraint.bindsDefaults);
  constraint.relation = Relation(relation);
}

static void fields(JsonFields &f, KernelConfig &config) {
  f("values", config.values);
  std::vector<uint32_t> tunables(
      config.tunables.begin(),
      config.tunables.begin() +
          std::min<size_t>(config.numTunables, planner::mostKernelTunables));
  f("tunables", tunables);
  const bool fits = tunables.size() <= planner::mostKernelTunables;
  f.require(fits, "tunables");
  if (!f.reads() || !fits)
    return;
  config.numTunables = uint32_t(tunables.size());
  std::copy(tunables.begin(), tunables.end(), config.tunables.begin());
}

void fields(JsonFields &f, KernelSpace &space) {
  std::string target = space.target == KernelTarget::Cuda ? "cuda" : "host";
  f("target", target);
  f.require(target == "cuda" || target == "host", "target");
  space.target = target == "cuda" ? KernelTarget::Cuda : KernelTarget::Host;
  f("block", space.block);
  f("max_grid", space.maxGrid);
  f("reshapable", space.reshapable);
  f("reason", space.reason);
  f("shared_bytes", space.sharedBytes);
  f("shared_is_dynamic", space.sharedIsDynamic);
  f("covers", space.covers);
  f("axes", space.axes);
  f.require(space.axes.size() >= numKernelParameters &&
                space.axes.size() <=
                    numKernelParameters + planner::mostKernelTunables,
            "axes");
  f("constraints", space.constraints);
  f("defaults", space.defaults);
}

} // namespace mgpu::kernels

namespace mgpu::kernels {

std::string spaceText(const KernelSpace &space) {
  return JsonFields::text(space);
}

Result<KernelSpace> parseSpace(std::string_view text) {
  MGPU_TRY_ASSIGN(KernelSpace space,
                  JsonFields::read<KernelSpace>("the space of a kernel", text));
  MGPU_TRY(checkSpace(space));
  return space;
}

/// Beyond these nothing that the emitter writes goes.
static constexpr uint32_t mostValues = 64, mostValue = 1 << 20;

/// Says what is wrong with the values of a parameter, or null.
static const char *faultOf(const KernelSpace &space,
                           KernelParameter parameter) {
  using P = KernelParameter;
  const auto &values = space.choice(parameter).values;
  if (!std::is_sorted(values.begin(), values.end()))
    return "a parameter's values are not ascending";
  if (values.back() > mostValue)
    return "a value is too large";
  // A block has as many of the others, or is made of so many.
  const bool isHost = space.target == KernelTarget::Host,
             mayBeNone = parameter == P::Unroll || parameter == P::TileX ||
                         parameter == P::TileY ||
                         (parameter == P::Vector && isHost);
  if (values.front() == 0 && !mayBeNone)
    return "a parameter that counts is 0";
  return nullptr;
}

Result<void> checkSpace(const KernelSpace &space) {
  auto bad = [](const std::string &how) {
    return fail(ErrorKind::Invalid, "the space of a kernel: " + how);
  };
  const Dim3 block = space.block;
  if (block.volume() == 0 ||
      std::max({block.x, block.y, block.z}) > mostValue ||
      block.volume() > mostValue)
    return bad("a block has no threads, or too many");
  if (space.defaults.numAxes() != space.axes.size())
    return bad("the defaults have other tunables");
  for (size_t k = 0; k < space.axes.size(); ++k) {
    const auto &[name, values, reason] = space.axes[k];
    if (values.size() > mostValues)
      return bad("a list of values is too long");
    if (k < numKernelParameters)
      if (const char *fault = faultOf(space, KernelParameter(k)))
        return bad(fault);
    if (std::ranges::find(values, space.defaults.at(k)) == values.end())
      return bad("a default is none of its values");
  }
  return {};
}

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
