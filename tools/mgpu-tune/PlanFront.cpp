// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints the result of `plan --pareto`.
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/PlanReport.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace mgpu::tools {

using nlohmann::json;

static void printFrontJson(const Front &front) {
  json rows = json::array();
  for (const FrontPoint &point : front.points) {
    rows.push_back({{"memory_bytes", point.memory},
                    {"replay_us", point.makespanUs},
                    {"contended_replay_us", point.contendedUs},
                    {"replay_bound_us", point.lowerBoundUs},
                    {"transforms", point.transforms}});
    if (!point.order.empty())
      rows.back()["schedule"] = point.order;
  }
  tools::printJson(json{{"front", std::move(rows)}, {"below", front.stopped}});
}

void printFront(const Front &front, bool asJson) {
  if (asJson)
    return printFrontJson(front);
  fmt::print("{:>16}  {:>14}  {:>9}  {:>18}  transforms\n", "memory (bytes)",
             "makespan (us)", "more", "with contention");
  for (const FrontPoint &point : front.points) {
    double least = front.points.front().chosenUs;
    fmt::print("{:>16}  {:>14.3f}  {:>+7.2f} %  {:>18.3f}  {}{}\n",
               point.memory, point.makespanUs,
               least > 0 ? 100 * (point.chosenUs / least - 1) : 0,
               point.contendedUs,
               point.transforms.empty()
                   ? "none"
                   : fmt::format("{}", fmt::join(point.transforms, " ")),
               point.order.empty() ? "" : ", schedule " + point.order);
  }
  if (!front.stopped.empty())
    fmt::print("below: {}\n", front.stopped);
}

} // namespace mgpu::tools
