// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/KernelStop.h"

#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"

using namespace mlir;

namespace mgpu::kernels {

void createStop(OpBuilder &b, Location loc, Value condition,
                const Twine &sentence) {
  auto stop = cf::AssertOp::create(b, loc, condition, sentence.str());
  ir::setMark(stop, ir::Mark::Sentence);
}

} // namespace mgpu::kernels
