// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_PASSES_H
#define MGPU_DIALECT_CONVERSION_PASSES_H

// The passes that lower programs, and two pipelines of them: functions over
// tensors become programs of the mgpu dialect, and all device work of a program
// becomes mgpu.launch. Passes.td describes each pass.

#include "dialect/conversion/FuseProducts.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
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

struct GpuPipelineOptions : mlir::PassPipelineOptions<GpuPipelineOptions> {
  Option<std::string> entry{
      *this, "entry",
      llvm::cl::desc("The function whose host code, with what it calls, is "
                     "converted"),
      llvm::cl::init("main")};
  Option<int64_t> devices{
      *this, "devices",
      llvm::cl::desc("How many devices there are where nothing says it; 0: "
                     "those that the text names"),
      llvm::cl::init(0)};
};

/// Adds the passes that make a program of the mgpu dialect of one whose host
/// code is the gpu dialect's, or touches memory itself.
void buildGpuPipeline(mlir::OpPassManager &passes,
                      const GpuPipelineOptions &options);

/// Whether the host code from `entry` on needs buildGpuPipeline(): it has
/// operations of the gpu dialect other than launches on memory of mgpu, prints,
/// or uses nothing of mgpu at all and touches memory.
bool isGpuProgram(mlir::ModuleOp module, llvm::StringRef entry);

struct SpmdPipelineOptions : mlir::PassPipelineOptions<SpmdPipelineOptions> {
  Option<std::string> entry{
      *this, "entry",
      llvm::cl::desc("The function over tensors; others that it calls are "
                     "inlined"),
      llvm::cl::init("main")};
  Option<int64_t> devices{
      *this, "devices",
      llvm::cl::desc("How many devices run it; 0: as many as its layouts or "
                     "mgpu.device_config say, else one"),
      llvm::cl::init(0)};
  Option<std::string> assign{
      *this, "assign",
      llvm::cl::desc("The meshes of mpmd's named computations and tensors: "
                     "f1=m1,f2=m2"),
      llvm::cl::init("")};
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("The order of mpmd's fragments: a name that mpmd-schedule "
                     "knows, or auto"),
      llvm::cl::init("auto")};
  Option<bool> remat{*this, "remat",
                     llvm::cl::desc("Backward work of mpmd computes forward "
                                    "work again"),
                     llvm::cl::init(false)};
  ListOption<std::string> customs{
      *this, "customs",
      llvm::cl::desc("The kernels of custom calls: NAME=FILE.cu:ENTRY, or "
                     "NAME=registered")};
  Option<bool> attention{*this, "attention",
                         llvm::cl::desc("Attention is one launch"),
                         llvm::cl::init(false)};
  Option<bool> tosa{*this, "tosa", llvm::cl::desc("Convert operations of tosa"),
                    llvm::cl::init(true)};
};

/// Adds the passes that make a program for devices and buffers of a function
/// over tensors.
void buildSpmdPipeline(mlir::OpPassManager &passes,
                       const SpmdPipelineOptions &options);

/// Whether `function` takes, gives or computes tensors, so that it needs
/// buildSpmdPipeline().
bool isTensorProgram(mlir::func::FuncOp function);

/// The name that the function had for an argument where it was exported: an
/// attribute, or a location `loc("x")`, around which the parser may have put
/// the SSA name. Null without one.
mlir::StringAttr exportedName(mlir::func::FuncOp entry, unsigned argument);

/// Whether the module has operations of tosa: what looks for them takes as long
/// as a third of the rest.
bool hasTosa(mlir::ModuleOp module);

/// Adds the dialects that a function over tensors may use, and what it takes to
/// bufferize them.
void registerTensorDialects(mlir::DialectRegistry &registry);

/// Makes the passes and the pipelines, `mgpu-launch-pipeline` and
/// `spmd-to-mgpu`, known to tools.
void registerPasses();

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_PASSES_H
