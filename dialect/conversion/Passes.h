// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_PASSES_H
#define MGPU_DIALECT_CONVERSION_PASSES_H

// The passes that lower programs to mgpu.launch, and the pipeline of them that
// every program goes through. Passes.td describes each.

#include "dialect/conversion/FuseProducts.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace mgpu::conversion {

#define GEN_PASS_DECL
#include "dialect/conversion/Passes.h.inc"

struct LaunchPipelineOptions
    : mlir::PassPipelineOptions<LaunchPipelineOptions> {
  Option<std::string> entry{
      *this, "entry",
      llvm::cl::desc("The function whose host code, with what it calls, is "
                     "converted"),
      llvm::cl::init("main")};
  Option<bool> fuse{*this, "fuse",
                    llvm::cl::desc("Operations share launches where they can"),
                    llvm::cl::init(true)};
  Option<FuseProducts> products{
      *this, "products", llvm::cl::desc("Matrix products that share launches"),
      llvm::cl::init(FuseProducts::Wide),
      llvm::cl::values(
          clEnumValN(FuseProducts::None, "none", "None"),
          clEnumValN(FuseProducts::Wide, "wide", "Those of f32 and f64"),
          clEnumValN(FuseProducts::All, "all", "All"))};
};

/// Adds the passes that give all device work of a program one form: launches
/// whose ids are operations.
void buildLaunchPipeline(mlir::OpPassManager &passes,
                         const LaunchPipelineOptions &options);

/// Makes the passes and the pipeline, `mgpu-launch-pipeline`, known to tools.
void registerPasses();

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_PASSES_H
