// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PLAN_CHOOSEORDER_H
#define MGPU_PIPELINE_PLAN_CHOOSEORDER_H

// `--schedule auto`: a pipeline is planned in the planner's own order and in
// that of each named schedule it can take, and the shortest plan wins. A named
// schedule that does not fit the memory is tried with --remat.

#include "pipeline/plan/ProgramPlan.h"

#include <functional>

namespace mgpu::pipeline {

/// The name under which the planner's own order stands.
inline constexpr const char *ownOrder = "own";

struct TriedOrder {
  std::string name;
  double makespanUs = 0;
  std::string why; ///< there is no plan; else empty
};

/// Empty where there was nothing to choose.
struct OrderChoice {
  std::string name; ///< of a schedule, also with " --remat", or ownOrder
  std::vector<TriedOrder> tried;
};
/// The words for people: a line, or nothing.
std::string toText(const OrderChoice &choice);

/// Makes a plan and gives its makespan. May change the program as the plan's
/// transforms do. Invalid where no plan fits the memory.
using PlanOf = std::function<Result<double>(LoadedProgram &)>;

/// For a pipeline that was loaded with the schedule "auto", each order goes to
/// `planOf`, and `program` becomes that of the shortest plan, as `planOf` left
/// it; of equal ones the first tried. `keep` is called whenever the plan that
/// was just made is the shortest so far. Any other program goes to `planOf`
/// once. Fails as the planner's own order does, if no order has a plan.
Result<OrderChoice> chooseOrder(LoadedProgram &program, const PlanOf &planOf,
                                const std::function<void()> &keep);

/// Chooses by plans for the host, for which nothing of the program changes but
/// its order. Nothing is planned where there is nothing to choose.
Result<OrderChoice> chooseOrder(LoadedProgram &program, PlanOptions options);

/// makeFront() of the planner's own order, and for a pipeline that was loaded
/// with the schedule "auto" of all orders: what no other point beats in both.
Result<Front> makeFrontOfOrders(const LoadedProgram &program,
                                const MachineRequest &request);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PLAN_CHOOSEORDER_H
