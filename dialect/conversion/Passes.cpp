// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {
#define GEN_PASS_REGISTRATION
#include "dialect/conversion/Passes.h.inc"
} // namespace

void buildLaunchPipeline(OpPassManager &passes,
                         const LaunchPipelineOptions &options) {
  passes.addPass(createConvertGpuLaunchToMgpu({options.entry}));
  passes.addPass(createConvertAttentionToMgpu({options.entry}));
  passes.addPass(createJoinProductRows({options.entry}));
  passes.addPass(createSplitReductions({options.entry}));
  if (options.fuse)
    passes.addPass(createFuseLaunches({options.entry, options.products}));
  passes.addPass(createConvertLinalgRowsToMgpu({options.entry}));
  passes.addPass(createConvertLinalgPointsToMgpu(
      {options.entry, /*checkGroups=*/!options.fuse}));
  passes.addPass(createConvertParallelLoopsToMgpu({options.entry}));
  passes.addPass(createRemoveUnreadBuffers());
  passes.addPass(createConvertLaunchIdsToGpu());
}

void registerPasses() {
  registerConversionPasses();
  PassPipelineRegistration<LaunchPipelineOptions>(
      "mgpu-launch-pipeline",
      "Convert all device work of a program into mgpu.launch",
      buildLaunchPipeline);
  PassPipelineRegistration<GpuPipelineOptions>(
      "gpu-to-mgpu",
      "Convert a program of the gpu dialect into one of the mgpu dialect",
      buildGpuPipeline);
  PassPipelineRegistration<SpmdPipelineOptions>(
      "spmd-to-mgpu",
      "Convert a function over tensors into a program of the mgpu dialect",
      buildSpmdPipeline);
}

} // namespace mgpu::conversion
