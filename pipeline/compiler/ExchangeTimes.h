// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_EXCHANGETIMES_H
#define MGPU_PIPELINE_COMPILER_EXCHANGETIMES_H

// Times of exchanges by the planner's model, for passes that choose by them.

#include "dialect/conversion/ExchangeCost.h"
#include "planner/cost/LatencyEstimator.h"

namespace mgpu::pipeline {

/// By the planning model (planner/schedule/list/Schedulers.h): collectives of
/// groups without a common device run beside each other, and each device takes
/// part in one copy at a time, so its copies take the sum of their times. Null
/// for a null `times`. With `oneDevice`, where one device stands for all,
/// copies between devices are the last resort: they differ by device.
conversion::ExchangeCost
exchangeCost(std::shared_ptr<const planner::LatencyEstimator> times,
             bool oneDevice);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_COMPILER_EXCHANGETIMES_H
