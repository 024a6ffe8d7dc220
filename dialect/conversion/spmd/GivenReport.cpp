// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/GivenReport.h"

#include "dialect/conversion/spmd/LayoutRemarks.h"
#include "dialect/mgpu/Diagnostics.h"

#include "llvm/ADT/TypeSwitch.h"

#include <fmt/format.h>

#include <numeric>
#include <set>

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// A collective of the program, and what a device receives.
struct Given {
  Exchange exchange;
  int64_t received = 0;
};

std::vector<std::vector<int64_t>> membersOf(ArrayAttr groups, int64_t devices) {
  std::vector<std::vector<int64_t>> found;
  if (!groups) {
    found.emplace_back(devices);
    std::iota(found[0].begin(), found[0].end(), 0);
    return found;
  }
  for (auto group : groups.getAsRange<DenseI64ArrayAttr>())
    found.emplace_back(group.asArrayRef().begin(), group.asArrayRef().end());
  return found;
}

/// All devices that send or receive are one group.
std::vector<std::vector<int64_t>> pairMembers(ArrayAttr pairs) {
  std::set<int64_t> devices;
  for (auto pair : pairs.getAsRange<DenseI64ArrayAttr>())
    devices.insert(pair.asArrayRef().begin(), pair.asArrayRef().end());
  return {{devices.begin(), devices.end()}};
}

int64_t staticBytes(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? bytesOf(type, type.getShape()) : 0;
}

template <typename Op>
Given givenOf(Op op, Exchange::Kind kind, int64_t devices) {
  Given given;
  given.exchange.kind = kind;
  given.exchange.bytes =
      std::max(staticBytes(op.getInput()), staticBytes(op.getInit()));
  given.received = given.exchange.bytes;
  if constexpr (std::is_same_v<Op, spmd::PermuteOp>) {
    given.exchange.groups = pairMembers(op.getPairs());
    return given;
  } else {
    given.exchange.groups = membersOf(op.getGroupsAttr(), devices);
    const auto count =
        std::max<int64_t>(int64_t(given.exchange.groups[0].size()), 1);
    if (kind != Exchange::Kind::Broadcast)
      given.received = given.exchange.bytes / count * (count - 1);
    if (kind == Exchange::Kind::AllReduce)
      given.received *= 2;
    return given;
  }
}

/// Nothing of other operations, and where shapes are not static.
std::optional<Given> givenOf(Operation *op, int64_t devices) {
  using Kind = Exchange::Kind;
  auto given = llvm::TypeSwitch<Operation *, Given>(op)
                   .Case([&](spmd::AllReduceOp each) {
                     return givenOf(each, Kind::AllReduce, devices);
                   })
                   .Case([&](spmd::AllGatherOp each) {
                     return givenOf(each, Kind::AllGather, devices);
                   })
                   .Case([&](spmd::ReduceScatterOp each) {
                     return givenOf(each, Kind::ReduceScatter, devices);
                   })
                   .Case([&](spmd::AllToAllOp each) {
                     return givenOf(each, Kind::AllToAll, devices);
                   })
                   .Case([&](spmd::BroadcastOp each) {
                     return givenOf(each, Kind::Broadcast, devices);
                   })
                   .Case([&](spmd::PermuteOp each) {
                     return givenOf(each, Kind::Permute, devices);
                   })
                   .Default([](Operation *) { return Given(); });
  if (given.exchange.bytes == 0 || given.exchange.groups[0].empty())
    return std::nullopt;
  return given;
}

} // namespace

void reportGiven(func::FuncOp function, const ExchangeCost &cost) {
  int64_t devices = 0;
  function.walk([&](spmd::LayoutConstraintOp op) {
    devices = op.getLayout().endDevice();
  });
  const bool isAnnotated = devices > 0; // its layouts are still to be found
  auto take = [&](Value value, spmd::LayoutAttr layout) {
    if (!layout || isAnnotated)
      return;
    devices = std::max(devices, layout.endDevice());
    reportLayout(value, layout);
  };
  for (BlockArgument argument : function.getArguments())
    take(argument, spmd::layoutOf(function, argument));
  for (OpOperand &returned : function.front().getTerminator()->getOpOperands())
    take(returned.get(),
         spmd::layoutOfResult(function, returned.getOperandNumber()));
  function.walk([&](Operation *op) {
    std::optional<Given> given = givenOf(op, devices);
    if (!given)
      return;
    emitReport(op->getLoc(), [&] {
      std::string name = op->getName().stripDialect().str();
      std::string time =
          cost ? fmt::format(", {:.3f} us", cost(given->exchange)) : "";
      return fmt::format("{} of {}: {} bytes to each device{}, as the program "
                         "says at {}",
                         name, placeOf(op->getOperand(0)), given->received,
                         time, ir::describeLocation(op->getLoc()));
    });
  });
}

} // namespace mgpu::conversion
