// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/plan/ChooseOrder.h"

#include "pipeline/program/Load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <tuple>

namespace mgpu::pipeline {

/// The words that ask for a named schedule and forward work done again.
static std::string withRemat(const std::string &name) {
  return name + " --remat";
}

std::string toText(const OrderChoice &choice) {
  if (choice.tried.empty())
    return {};
  std::string out = fmt::format("schedule   {}, the shortest of:", choice.name);
  for (const TriedOrder &tried : choice.tried)
    out += (&tried == &choice.tried.front() ? " " : ", ") + tried.name +
           (tried.why.empty() ? fmt::format(" {:.3f} us", tried.makespanUs)
                              : fmt::format(" (no plan: {})", tried.why));
  return out + "\n";
}

Result<OrderChoice> chooseOrder(LoadedProgram &program, const PlanOf &planOf,
                                const std::function<void()> &keep) {
  OrderChoice choice;
  if (program.schedules.empty()) {
    if (const Result<double> made = planOf(program); !made)
      return fail(made.error());
    keep();
    return choice;
  }
  std::optional<LoadedProgram> best;
  double shortest = 0;
  auto plan = [&](const std::string &name,
                  Result<LoadedProgram> ordered) -> Result<void> {
    if (!ordered)
      return fail(ordered.error());
    MGPU_TRY_ASSIGN(const double makespanUs, planOf(*ordered));
    choice.tried.push_back({name, makespanUs, {}});
    if (best && makespanUs >= shortest)
      return {};
    shortest = makespanUs;
    best = std::move(*ordered);
    choice.name = name;
    keep();
    return {};
  };
  // A copy, as planOf() may change what it plans.
  const Result<void> own = plan(ownOrder, program);
  if (!own && own.error().kind != ErrorKind::Invalid)
    return fail(own.error());
  if (!own)
    choice.tried.push_back({ownOrder, 0, own.error().message});
  auto tryOrder = [&](const std::string &name,
                      Result<LoadedProgram> ordered) -> Result<bool> {
    Result<void> made = plan(name, std::move(ordered));
    if (!made && made.error().kind == ErrorKind::Internal)
      return fail(made.error());
    if (!made)
      choice.tried.push_back({name, 0, made.error().message});
    return made.has_value();
  };
  for (const std::string &name : program.schedules) {
    MGPU_TRY_ASSIGN(const bool fits,
                    tryOrder(name, loadOrder(program, name, false)));
    if (!fits && !program.from.remat) // it takes less memory, and more work
      MGPU_TRY(tryOrder(withRemat(name), loadOrder(program, name, true)));
  }
  if (!best)
    return fail(own.error());
  program = std::move(*best);
  return choice;
}

Result<OrderChoice> chooseOrder(LoadedProgram &program, PlanOptions options) {
  if (program.schedules.empty())
    return OrderChoice();
  options.planFile.clear(); // it is a plan of what is chosen here
  options.mustBeStored = false;
  auto planOf = [&](LoadedProgram &ordered) -> Result<double> {
    LoadedProgram copy = ordered;
    MGPU_TRY_ASSIGN(const planner::TargetPlan made, makePlan(copy, {options}));
    return made.plan.makespanUs;
  };
  MGPU_TRY_ASSIGN(OrderChoice choice, chooseOrder(program, planOf, [] {}));
  fmt::print(stderr, "mgpu-tune: {}", toText(choice));
  return choice;
}

/// The points that no other beats in memory and time, by falling memory.
static std::vector<FrontPoint> paretoOf(std::vector<FrontPoint> points) {
  std::ranges::sort(points, {}, [](const FrontPoint &point) {
    return std::tuple(point.memory, point.chosenUs, point.order);
  });
  std::vector<FrontPoint> kept;
  for (FrontPoint &point : points)
    if (kept.empty() || point.chosenUs < kept.back().chosenUs)
      kept.push_back(std::move(point));
  std::ranges::reverse(kept);
  return kept;
}

Result<Front> makeFrontOfOrders(const LoadedProgram &program,
                                const MachineRequest &request) {
  auto own = makeFront(program, request);
  if (program.schedules.empty())
    return own;
  Front all;
  auto add = [&](const std::string &name, Result<Front> front) {
    if (!front)
      return;
    for (FrontPoint &point : front->points) {
      point.order = name;
      all.points.push_back(std::move(point));
    }
    all.stopped = std::move(front->stopped);
  };
  auto addOrder = [&](const std::string &name, bool remat) -> Result<void> {
    const Result<LoadedProgram> ordered = loadOrder(program, name, remat);
    if (ordered)
      add(remat ? withRemat(name) : name, makeFront(*ordered, request));
    else if (ordered.error().kind == ErrorKind::Internal)
      return fail(ordered.error());
    return {};
  };
  for (const std::string &name : program.schedules) {
    MGPU_TRY(addOrder(name, false));
    if (!program.from.remat)
      MGPU_TRY(addOrder(name, true));
  }
  const Error ownError = own ? Error{} : own.error();
  add(ownOrder, std::move(own));
  if (all.points.empty())
    return fail(ownError);
  all.points = paretoOf(std::move(all.points));
  return all;
}

} // namespace mgpu::pipeline
