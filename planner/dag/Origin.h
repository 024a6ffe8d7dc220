// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_ORIGIN_H
#define MGPU_PLANNER_DAG_ORIGIN_H

#include <array>
#include <cstdint>
#include <string_view>

namespace mgpu::planner {

/// Says what a duration or a figure of a model rests on.
enum class Origin : uint8_t {
  Assumed,   ///< a model whose figures nobody measured
  Published, ///< a model with figures that its makers published
  Scaled,    ///< those of another machine, scaled by what a driver says
  Measured,
  Given, ///< the program or file says it
};
inline constexpr std::array allOrigins = {Origin::Assumed, Origin::Published,
                                          Origin::Scaled, Origin::Measured,
                                          Origin::Given};
inline constexpr std::array<std::string_view, 5> originWords = {
    "assumed", "published", "scaled", "measured", "given"};
constexpr std::string_view toString(Origin origin) {
  return originWords[size_t(origin)];
}

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_ORIGIN_H
