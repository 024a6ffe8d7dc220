// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTLAUNCHIDSTOGPU
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

struct ConvertLaunchIdsToGpu
    : impl::ConvertLaunchIdsToGpuBase<ConvertLaunchIdsToGpu> {
  void runOnOperation() override {
    bool isChanged = false;
    getOperation()->walk<WalkOrder::PreOrder>([&](ir::LaunchOp launch) {
      isChanged |= launch.getNumIdArguments() > 0;
      launch.replaceIdArguments();
      return WalkResult::skip();
    });
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
