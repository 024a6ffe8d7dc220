// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CHECKBUFFERIZABLE
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

struct CheckBufferizable : impl::CheckBufferizableBase<CheckBufferizable> {
  using CheckBufferizableBase::CheckBufferizableBase;

  void runOnOperation() override {
    auto checked = getOperation().walk([](Operation *op) {
      if (!bufferization::hasTensorSemantics(op) ||
          isa<bufferization::BufferizableOpInterface>(op))
        return WalkResult::advance();
      ir::emitUnsupported(op)
          << "is not supported on tensors: it has no form on buffers; write "
             "it with linalg.generic";
      return WalkResult::interrupt();
    });
    if (checked.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
