// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/InlinedSize.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MathExtras.h"

namespace mgpu::planner {

using namespace mlir;

namespace {

constexpr size_t deepest = 1000;

class Sizes {
public:
  Sizes(ModuleOp module, uint64_t limit) : symbols(module), limit(limit) {
    uint64_t written = 0;
    module.walk([&](Operation *) { ++written; });
    most = std::max(limit, written);
  }

  LogicalResult check(func::FuncOp entry) {
    enter(entry);
    while (!path.empty()) {
      if (path.size() > deepest)
        return ir::emitUnsupported(path.back().function)
               << "is called through more than " << deepest
               << " functions; this version follows no more";
      Frame &top = path.back();
      if (top.next < top.callees.size()) {
        enter(top.callees[top.next++]);
        continue;
      }
      if (failed(leave()))
        return failure();
    }
    return success();
  }

private:
  struct Frame {
    func::FuncOp function;
    uint64_t operations = 0;
    SmallVector<func::FuncOp> callees; ///< one for each call
    size_t next = 0;
  };

  void enter(func::FuncOp function) {
    // Recursion adds nothing here: others say that it cannot run.
    if (!sizes.try_emplace(function, 0).second)
      return;
    Frame frame{function, 0, {}, 0};
    function.walk([&](Operation *op) {
      ++frame.operations;
      for (NamedAttribute each : op->getAttrs())
        if (auto name = dyn_cast<FlatSymbolRefAttr>(each.getValue()))
          if (auto callee = symbols.lookup<func::FuncOp>(name.getValue()))
            frame.callees.push_back(callee);
    });
    path.push_back(std::move(frame));
  }

  LogicalResult leave() {
    const Frame frame = std::move(path.back());
    path.pop_back();
    uint64_t size = frame.operations;
    for (func::FuncOp callee : frame.callees)
      size = llvm::SaturatingAdd(size, sizes.lookup(callee));
    sizes[frame.function] = size;
    if (size <= most)
      return success();
    return ir::emitUnsupported(frame.function)
           << "@" << func::FuncOp(frame.function).getSymName() << " at "
           << ir::describeLocation(func::FuncOp(frame.function).getLoc())
           << " has " << size
           << " operations with all that it calls in its place, more than the "
           << limit << " that a program may have; raise --node-limit";
  }

  SymbolTable symbols;
  uint64_t limit, most;
  std::vector<Frame> path;
  llvm::DenseMap<func::FuncOp, uint64_t> sizes;
};

} // namespace

LogicalResult checkInlinedSize(ModuleOp module, StringRef entry,
                               uint64_t limit) {
  auto function = module.lookupSymbol<func::FuncOp>(entry);
  return function ? Sizes(module, limit).check(function) : success();
}

} // namespace mgpu::planner
