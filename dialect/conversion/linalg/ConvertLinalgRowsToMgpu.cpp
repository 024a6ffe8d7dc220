// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/linalg/RowLaunch.h"
#include "dialect/mgpu/HostCode.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTLINALGROWSTOMGPU
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

LogicalResult convertRows(const LaunchGroup &group, const RowRun &run) {
  SmallVector<Value> memrefs;
  for (const RowAccess &access : run.ops.back().form.accesses)
    memrefs.push_back(access.memref);
  FailureOr<Value> device = ir::deviceOfAll(group.back(), memrefs);
  if (failed(device))
    return failure();
  replaceByLaunch(group, launchRows(run, *device));
  return success();
}

struct ConvertLinalgRowsToMgpu
    : impl::ConvertLinalgRowsToMgpuBase<ConvertLinalgRowsToMgpu> {
  using ConvertLinalgRowsToMgpuBase::ConvertLinalgRowsToMgpuBase;

  void runOnOperation() override {
    bool isChanged = false;
    for (const LaunchGroup &group : launchGroupsOf(getOperation(), entry)) {
      auto run = rowRunOf(group);
      if (!run)
        continue;
      if (failed(convertRows(group, *run)))
        return signalPassFailure();
      isChanged = true;
    }
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
