// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SPACE_CONFIGSPACE_H
#define MGPU_TUNER_SPACE_CONFIGSPACE_H

// The legal configurations of a tuning problem: parameters with finitely many
// values, constraints between them, and a dense number for each legal point.

#include "support/Result.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu::tuner {

struct Parameter {
  std::string name;
  /// Ascending. For a choice without order: 0, 1, 2, ...
  std::vector<double> values;
  /// For a choice without order, one for each value; else empty.
  std::vector<std::string> labels;

  bool isOrdered() const { return labels.empty(); }
  std::string textOf(uint32_t value) const;
};

/// A condition on the values of `parameters` (positions in the space); `holds`
/// gets their values in that order.
struct Constraint {
  std::string text; ///< for people: "block_x * block_y <= 1024"
  std::vector<uint32_t> parameters;
  std::function<bool(std::span<const double>)> holds;
};

/// A legal point; ids run from 0 to size() - 1 in lexicographic order.
using ConfigId = uint32_t;

class ConfigSpace {
public:
  /// Extends partial points value by value and drops them at the first
  /// constraint they break, so that the work follows the legal prefixes and not
  /// the product. Unsupported beyond `limit` points, Invalid when none is left.
  static Result<ConfigSpace> generate(std::vector<Parameter> parameters,
                                      std::span<const Constraint> constraints,
                                      uint64_t limit = 10'000'000);
  /// Exactly the given points: rows of value positions, one for each parameter.
  /// Invalid when a row is out of range or given twice.
  static Result<ConfigSpace> fromPoints(std::vector<Parameter> parameters,
                                        std::vector<uint16_t> points);

  uint32_t size() const { return numPoints; }
  uint32_t numParameters() const { return uint32_t(parameterList.size()); }
  const Parameter &parameter(uint32_t p) const { return parameterList[p]; }
  /// Points of the product without constraints; inexact above 2^53.
  double productSize() const;

  /// Value positions of a point, by parameter.
  std::span<const uint16_t> positions(ConfigId id) const {
    return {points.data() + size_t(id) * parameterList.size(),
            parameterList.size()};
  }
  double value(ConfigId id, uint32_t parameter) const {
    return parameterList[parameter].values[positions(id)[parameter]];
  }
  std::optional<ConfigId> find(std::span<const uint16_t> positions) const;
  /// Legal points that differ in one parameter; `nearest` keeps those that lie
  /// one value away in an ordered one. Replaces the contents of `found`.
  void neighbours(ConfigId id, bool nearest,
                  std::vector<ConfigId> &found) const;
  /// "block_x=32 tile=4"
  std::string describe(ConfigId id) const;

private:
  explicit ConfigSpace(std::vector<Parameter> parameters)
      : parameterList(std::move(parameters)) {}

  std::vector<Parameter> parameterList;
  std::vector<uint16_t> points; ///< rows in lexicographic order
  uint32_t numPoints = 0;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SPACE_CONFIGSPACE_H
