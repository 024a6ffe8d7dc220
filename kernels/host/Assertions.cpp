// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/Assertions.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// Escapes it as text of a format.
std::string quoted(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '%' ? "%%" : std::string(1, c);
  return result;
}

/// The function that a place names; CUDA's word where it names none.
std::string functionAt(Location location) {
  std::string found = "(unknown)";
  location->walk([&](Location inner) {
    auto name = dyn_cast<NameLoc>(inner);
    if (!name)
      return WalkResult::advance();
    found = name.getName().str();
    return WalkResult::interrupt();
  });
  return found;
}

void announce(cf::AssertOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto [file, line] = ir::fileLine(loc);
  const std::string place =
      file.empty() ? "(unknown):0" : file.str() + ":" + std::to_string(line);
  const std::string text =
      quoted(place + ": " + functionAt(loc)) +
      ": block: [%lld,%lld,%lld], thread: [%lld,%lld,%lld] Assertion `" +
      quoted(op.getMsg()) + "` failed.\n";
  Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  Value fails = arith::XOrIOp::create(b, loc, op.getArg(), yes);
  auto branch = scf::IfOp::create(b, loc, fails, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> ids;
  for (auto axis : {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z})
    ids.push_back(gpu::BlockIdOp::create(b, loc, axis));
  for (auto axis : {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z})
    ids.push_back(gpu::ThreadIdOp::create(b, loc, axis));
  gpu::PrintfOp::create(b, loc, text, ids);
}

} // namespace

void announceAssertions(func::FuncOp kernel) {
  SmallVector<cf::AssertOp> found;
  kernel.walk([&](cf::AssertOp op) { found.push_back(op); });
  for (cf::AssertOp op : found)
    announce(op);
}

} // namespace mgpu::kernels
