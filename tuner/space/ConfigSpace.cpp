// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/space/ConfigSpace.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <numeric>

namespace mgpu::tuner {

std::string Parameter::textOf(uint32_t value) const {
  return isOrdered() ? fmt::format("{}", values[value]) : labels[value];
}

static Result<void> checkParameters(std::span<const Parameter> parameters) {
  if (parameters.empty())
    return fail(ErrorKind::Invalid, "a tuning space needs a parameter");
  for (const Parameter &parameter : parameters) {
    if (parameter.values.empty() ||
        parameter.values.size() > std::numeric_limits<uint16_t>::max())
      return fail(ErrorKind::Invalid,
                  fmt::format("parameter '{}' has {} values; 1 to 65535 can be "
                              "searched",
                              parameter.name, parameter.values.size()));
    if (!std::is_sorted(parameter.values.begin(), parameter.values.end(),
                        std::less_equal<double>()))
      return fail(ErrorKind::Invalid,
                  fmt::format("the values of parameter '{}' must ascend",
                              parameter.name));
    if (!parameter.isOrdered() &&
        parameter.labels.size() != parameter.values.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("parameter '{}' has {} values but {} labels",
                              parameter.name, parameter.values.size(),
                              parameter.labels.size()));
  }
  return {};
}

Result<ConfigSpace>
ConfigSpace::generate(std::vector<Parameter> parameters,
                      std::span<const Constraint> constraints, uint64_t limit) {
  MGPU_TRY(checkParameters(parameters));
  ConfigSpace space(std::move(parameters));
  const size_t numParameters = space.parameterList.size();
  // Constraints are asked as soon as their last parameter has a value.
  std::vector<std::vector<const Constraint *>> askedAt(numParameters);
  for (const Constraint &constraint : constraints) {
    uint32_t last = 0;
    for (uint32_t p : constraint.parameters) {
      if (p >= numParameters)
        return fail(ErrorKind::Invalid,
                    fmt::format("constraint '{}' names parameter {} of {}",
                                constraint.text, p, numParameters));
      last = std::max(last, p);
    }
    askedAt[last].push_back(&constraint);
  }
  limit = std::min<uint64_t>(limit, std::numeric_limits<ConfigId>::max());

  std::vector<uint16_t> point(numParameters, 0);
  std::vector<double> values;
  auto isLegal = [&](size_t p) {
    return std::all_of(
        askedAt[p].begin(), askedAt[p].end(), [&](const Constraint *asked) {
          values.clear();
          for (uint32_t q : asked->parameters)
            values.push_back(space.parameterList[q].values[point[q]]);
          return asked->holds(values);
        });
  };
  // `point[0..p]` is the prefix being tried.
  for (size_t p = 0;;) {
    if (point[p] == space.parameterList[p].values.size()) {
      if (p == 0)
        break;
      point[p--] = 0;
      ++point[p];
    } else if (!isLegal(p)) {
      ++point[p];
    } else if (p + 1 < numParameters) {
      ++p;
    } else {
      if (space.numPoints == limit)
        return fail(ErrorKind::Unsupported,
                    fmt::format("the tuning space has more than {} legal "
                                "points; give its parameters fewer values",
                                limit));
      space.points.insert(space.points.end(), point.begin(), point.end());
      ++space.numPoints;
      ++point[p];
    }
  }
  if (space.numPoints == 0)
    return fail(ErrorKind::Invalid,
                "no point of the tuning space meets its constraints");
  return space;
}

Result<ConfigSpace> ConfigSpace::fromPoints(std::vector<Parameter> parameters,
                                            std::vector<uint16_t> points) {
  MGPU_TRY(checkParameters(parameters));
  ConfigSpace space(std::move(parameters));
  const size_t width = space.parameterList.size();
  if (points.empty() || points.size() % width != 0 ||
      points.size() / width > std::numeric_limits<ConfigId>::max())
    return fail(ErrorKind::Invalid,
                fmt::format("{} values are not whole points of {} parameters",
                            points.size(), width));
  for (size_t k = 0; k < points.size(); ++k)
    if (points[k] >= space.parameterList[k % width].values.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("point {}: parameter '{}' has no value number {}",
                              k / width, space.parameterList[k % width].name,
                              points[k]));
  space.numPoints = uint32_t(points.size() / width);
  std::vector<uint32_t> order(space.numPoints);
  std::iota(order.begin(), order.end(), 0);
  auto row = [&](uint32_t k) {
    return std::span<const uint16_t>(points).subspan(k * width, width);
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::ranges::lexicographical_compare(row(a), row(b));
  });
  for (uint32_t k : order) {
    if (!space.points.empty() &&
        std::equal(space.points.end() - ptrdiff_t(width), space.points.end(),
                   row(k).begin()))
      return fail(ErrorKind::Invalid,
                  fmt::format("point {} is given twice", k));
    space.points.insert(space.points.end(), row(k).begin(), row(k).end());
  }
  return space;
}

double ConfigSpace::productSize() const {
  double product = 1;
  for (const Parameter &parameter : parameterList)
    product *= double(parameter.values.size());
  return product;
}

std::optional<ConfigId>
ConfigSpace::find(std::span<const uint16_t> wanted) const {
  ConfigId low = 0, high = numPoints;
  while (low < high) {
    ConfigId middle = low + (high - low) / 2;
    if (std::ranges::lexicographical_compare(positions(middle), wanted))
      low = middle + 1;
    else
      high = middle;
  }
  if (low < numPoints && std::ranges::equal(positions(low), wanted))
    return low;
  return std::nullopt;
}

void ConfigSpace::neighbours(ConfigId id, bool nearest,
                             std::vector<ConfigId> &found) const {
  found.clear();
  std::vector<uint16_t> point(positions(id).begin(), positions(id).end());
  for (size_t p = 0; p < point.size(); ++p) {
    const uint16_t home = point[p];
    const Parameter &parameter = parameterList[p];
    for (uint16_t v = 0; v < parameter.values.size(); ++v) {
      if (v == home || (nearest && parameter.isOrdered() &&
                        (v > home ? v - home : home - v) > 1))
        continue;
      point[p] = v;
      if (auto neighbour = find(point))
        found.push_back(*neighbour);
    }
    point[p] = home;
  }
}

std::string ConfigSpace::describe(ConfigId id) const {
  std::string text;
  for (uint32_t p = 0; p < numParameters(); ++p)
    text += fmt::format("{}{}={}", p ? " " : "", parameterList[p].name,
                        parameterList[p].textOf(positions(id)[p]));
  return text;
}

} // namespace mgpu::tuner
