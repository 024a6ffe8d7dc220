// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/ExchangeCost.h"
#include "dialect/conversion/spmd/Partition.h"
#include "dialect/conversion/spmd/Programs.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/TypeSwitch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <set>

namespace mgpu::conversion {

// Remarks about layouts, and about what it costs to change them.

using namespace mlir;

void Partition::reportLayouts() {
  auto report = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (type && type.hasStaticShape())
      reportLayout(value, layouts.of(value));
  };
  for (BlockArgument argument : function.getArguments())
    report(argument);
  function.walk([&](Operation *op) {
    if (!op->hasTrait<OpTrait::ConstantLike>() && !isa<tensor::EmptyOp>(op))
      for (Value result : op->getResults())
        report(result);
  });
}

/// The axes that several ways give to different factors.
static Axes disputedAxes(ArrayRef<Layouts::Way> ways) {
  Axes axes;
  for (const Layouts::Way &way : ways)
    for (auto [cut, taken] : llvm::zip(way.cuts, ways.front().cuts))
      for (int64_t axis : cut.axes)
        if (!llvm::is_contained(taken.axes, axis) &&
            !llvm::is_contained(axes, axis))
          axes.push_back(axis);
  llvm::sort(axes);
  return axes;
}

void Partition::reportConflict(ArrayRef<Layouts::Way> ways) {
  const Axes axes = disputedAxes(ways);
  if (axes.empty())
    return;
  emitReport(current->getLoc(), [&] {
    std::vector<int64_t> others;
    for (const Layouts::Way &way : ways.drop_front())
      others.push_back(way.bytes);
    return fmt::format("conflict over axes {} in '{}' at {}: cut in the way "
                       "of {} bytes; others have {}",
                       axes, current->getName().getStringRef().str(),
                       ir::describeLocation(current->getLoc()),
                       ways.front().bytes, fmt::join(others, " or "));
  });
}

/// The collectives and copies of `steps`, as "all_gather, move".
static std::string exchangesOf(const ReshardSteps &steps) {
  static constexpr const char *names[] = {"slice",      "all_to_all",
                                          "all_gather", "reduce_scatter",
                                          "all_reduce", "move"};
  std::vector<std::string> made;
  for (const ReshardStep &step : steps)
    if (step.kind != ReshardStep::Slice)
      made.push_back(names[step.kind]);
  return fmt::format("{}", fmt::join(made, ", "));
}

/// The predicted time of the steps, and that of the steps of the fewest bytes.
static std::string timeOf(const Reshards &reshards,
                          const ReshardRequest &request,
                          const ReshardSteps &steps) {
  if (reshards.countsBytes())
    return "";
  std::string text =
      fmt::format(", {:.3f} us", reshards.costOf(request, steps));
  const ReshardSteps fewest = Reshards().find(request);
  if (exchangesOf(fewest) != exchangesOf(steps))
    text += fmt::format(" ({} of {} bytes: {:.3f} us)", exchangesOf(fewest),
                        bytesReceived(request, fewest),
                        reshards.costOf(request, fewest));
  return text;
}

void Partition::reportChange(Value value, const ReshardRequest &request,
                             const ReshardSteps &steps) {
  if (llvm::all_of(steps, [](const ReshardStep &step) {
        return step.kind == ReshardStep::Slice;
      }))
    return;
  emitReport(value.getLoc(), [&] {
    std::string cause =
        request.partial.empty()
            ? fmt::format("from {} to {}", splitOf(request.from),
                          splitOf(request.to))
            : fmt::format("partial along axes {}", request.partial);
    return fmt::format("{} of {}: {} bytes to each device{}, {}, for '{}' at "
                       "{}",
                       exchangesOf(steps), placeOf(value),
                       bytesReceived(request, steps),
                       timeOf(reshards, request, steps), cause,
                       current->getName().getStringRef().str(),
                       ir::describeLocation(current->getLoc()));
  });
}

void emitReport(Location loc, function_ref<std::string()> text) {
  if (auto remark =
          remark::analysis(loc, remark::RemarkOpts::name("layout").category(
                                    "spmd-partition-tensors")))
    remark << StringRef(text());
}

template <typename T>
static std::string textOf(const T &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

/// The lists of a layout, as `[[0], []]`.
static std::string listsOf(ArrayRef<DenseI64ArrayAttr> lists) {
  std::vector<llvm::ArrayRef<int64_t>> all(lists.begin(), lists.end());
  return fmt::format("{}", all);
}

std::string splitOf(spmd::LayoutAttr layout) {
  std::string text = listsOf(layout.getSplit());
  if (!layout.getOffsets().empty())
    text += " at " + listsOf(layout.getOffsets());
  if (!layout.getHalos().empty())
    text += " with halos " + listsOf(layout.getHalos());
  return text;
}

std::string placeOf(Value value) {
  std::string name = ir::nameOf(value.getLoc(), "");
  return (name.empty() ? "the value" : "%" + name) + " at " +
         ir::describeLocation(value.getLoc());
}

void reportLayout(Value value, spmd::LayoutAttr layout) {
  emitReport(value.getLoc(), [&] {
    auto type = cast<RankedTensorType>(value.getType());
    return fmt::format("{}: {} split {}, {} bytes on a device", placeOf(value),
                       textOf(Type(type)), splitOf(layout),
                       bytesOf(type, layout.shardShape(type.getShape(), 0)));
  });
}

#define GEN_PASS_DEF_PARTITIONTENSORS
#include "dialect/conversion/Passes.h.inc"

// Remarks about the layouts and collectives that a program itself names.

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

/// Reports on a function before it is partitioned: what each collective of
/// static shape costs, and without annotations the layouts of arguments and
/// results.
static void reportGiven(func::FuncOp function, const ExchangeCost &cost) {
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

// Code of single devices in a function over whole tensors: collectives, the
// device's number, and what computes with values that differ between devices.

namespace {

class Finder {
public:
  FailureOr<DenseSet<Operation *>> run(func::FuncOp function);

private:
  void visit(Operation *op);
  bool usesDifferent(Operation *op) const;
  bool givesSame(Operation *op, bool inputsDiffer) const;

  DenseSet<Operation *> code;
  DenseSet<Value> different; ///< between devices
};

bool isCode(Operation *op) {
  return isa_and_nonnull<spmd::SpmdDialect>(op->getDialect()) &&
         !isa<spmd::LayoutConstraintOp, spmd::SameLayoutOp, spmd::CustomCallOp>(
             op);
}

/// Whether `op` or what is in it uses a value that differs between devices.
bool Finder::usesDifferent(Operation *op) const {
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(
                   inner->getOperands(),
                   [&](Value value) { return different.contains(value); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether all devices get the same of a collective. Where its inputs differ
/// all devices must be in one group.
bool Finder::givesSame(Operation *op, bool inputsDiffer) const {
  if (!isa<spmd::AllReduceOp, spmd::AllGatherOp, spmd::BroadcastOp>(op))
    return false;
  auto groups = op->getAttrOfType<ArrayAttr>("groups");
  if (!groups)
    return true;
  auto configs = op->getParentOfType<ModuleOp>().getOps<ir::DeviceConfigOp>();
  int64_t devices =
      configs.empty() ? 0 : (*configs.begin()).getConfig().getNumDevices();
  int64_t listed = 0;
  for (Attribute group : groups)
    listed += cast<DenseI64ArrayAttr>(group).size();
  return listed == devices && (!inputsDiffer || groups.size() == 1);
}

void Finder::visit(Operation *op) {
  bool hasCode = op->walk([](Operation *inner) {
                     return isCode(inner) ? WalkResult::interrupt()
                                          : WalkResult::advance();
                   }).wasInterrupted();
  bool differs = usesDifferent(op);
  if (!hasCode && !differs)
    return;
  code.insert(op);
  if (!givesSame(op, differs))
    different.insert_range(op->getResults());
}

FailureOr<DenseSet<Operation *>> Finder::run(func::FuncOp function) {
  for (Operation &op : function.front().without_terminator())
    visit(&op);
  auto refused = function.walk([&](Operation *op) {
    if (isa<spmd::FullToShardOp, spmd::ShardToFullOp, spmd::MoveOp,
            spmd::CallOp>(op)) {
      ir::emitUnsupported(op)
          << "works on one device's part, and spmd.layout_constraint on whole "
             "tensors; a function has one or the other";
      return WalkResult::interrupt();
    }
    if (isa<spmd::LayoutConstraintOp, spmd::SameLayoutOp>(op) &&
        different.contains(op->getOperand(0))) {
      ir::emitUnsupported(op) << "asks for the layout of a tensor that differs "
                                 "between devices; gather or reduce it over "
                                 "all of them first";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (refused.wasInterrupted())
    return failure();
  return std::move(code);
}

} // namespace

/// The outermost operations that each device must do by itself. Collectives of
/// which all devices get the same are among them, but not what uses their
/// results. An error names a layout that is asked for of a value which differs
/// between devices, and operations on a device's part of a tensor.
static FailureOr<DenseSet<Operation *>> deviceCodeOf(func::FuncOp function) {
  return Finder().run(function);
}

namespace {

/// Constants and fills get the layout of each use of their own, so each use
/// gets one.
void separateUses(func::FuncOp function) {
  SmallVector<Operation *> cheap;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->getNumResults() == 1 &&
        isa<RankedTensorType>(op->getResult(0).getType()) &&
        (op->hasTrait<OpTrait::ConstantLike>() ||
         isa<tensor::EmptyOp, linalg::FillOp, tensor::SplatOp>(op)))
      cheap.push_back(op);
  });
  for (Operation *op : llvm::reverse(cheap)) { // fills before what they fill
    SmallVector<OpOperand *> uses =
        llvm::map_to_vector(op->getUses(), [](OpOperand &use) { return &use; });
    for (OpOperand *use : ArrayRef(uses).drop_front(uses.empty() ? 0 : 1))
      use->set(OpBuilder(op).clone(*op)->getResult(0));
  }
}

struct PartitionTensors : impl::PartitionTensorsBase<PartitionTensors> {
  using PartitionTensorsBase::PartitionTensorsBase;
  PartitionTensors() = default;
  PartitionTensors(const PartitionTensorsOptions &options, ExchangeCost cost)
      : PartitionTensorsBase(options), cost(std::move(cost)) {}

  ExchangeCost cost; ///< not by text

  static bool hasConstraints(func::FuncOp function) {
    return function
        .walk([](spmd::LayoutConstraintOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  LogicalResult partitionOne(func::FuncOp function) {
    FailureOr<SmallVector<int64_t>> mesh = meshOf(function);
    if (failed(mesh))
      return failure();
    FailureOr<DenseSet<Operation *>> code = deviceCodeOf(function);
    if (failed(code))
      return failure();
    separateUses(function);
    Layouts layouts(function, *mesh, std::move(*code));
    return partition(function, layouts, cost);
  }

  void runOnOperation() override {
    bool isChanged = false;
    for (func::FuncOp function : programsOf(getOperation(), entry)) {
      reportGiven(function, cost);
      if (!hasConstraints(function))
        continue;
      isChanged = true;
      if (failed(partitionOne(function)))
        return signalPassFailure();
    }
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

std::unique_ptr<Pass>
createPartitionTensors(const PartitionTensorsOptions &options,
                       ExchangeCost cost) {
  return std::make_unique<PartitionTensors>(options, std::move(cost));
}

} // namespace mgpu::conversion
