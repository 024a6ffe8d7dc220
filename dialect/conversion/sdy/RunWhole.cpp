// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/sdy/RunWhole.h"

#include "dialect/mgpu/Diagnostics.h"

#include <map>

namespace mgpu::conversion {

using namespace mlir;

bool isOverWholeTensors(func::FuncOp function) {
  AttrTypeWalker walker;
  bool isCut = false;
  walker.addWalk([&](sdy::TensorShardingAttr sharding) {
    isCut |= llvm::any_of(sharding.getDims(), [](const auto &dim) {
      return !dim.getAxes().empty();
    });
  });
  function.walk([&](Operation *op) { walker.walk(op->getAttrDictionary()); });
  return isCut;
}

//===----------------------------------------------------------------------===//
// Parts and wholes
//===----------------------------------------------------------------------===//

namespace {

/// A sharding, null for none, and the parts that it makes.
struct Cutting {
  sdy::TensorShardingAttr sharding;
  Parts parts;
};

class RunWhole {
public:
  RunWhole(interpreter::RunParallelOp op, func::FuncOp function,
           DeviceCode &code)
      : op(op), function(function), code(code) {}
  LogicalResult run();

private:
  FailureOr<Cutting> cutting(sdy::TensorShardingAttr sharding, Type whole,
                             Type part);
  Value joined(ValueRange values, const Parts &parts);
  Value constrained(Value whole, sdy::TensorShardingAttr sharding);
  Value partOf(Value whole, Type type, const Parts &parts, int64_t process);

  interpreter::RunParallelOp op;
  func::FuncOp function;
  DeviceCode &code;
};

} // namespace

/// Fails where `part` is not what the sharding makes of `whole`.
FailureOr<Cutting> RunWhole::cutting(sdy::TensorShardingAttr sharding,
                                     Type whole, Type part) {
  auto type = cast<RankedTensorType>(whole);
  Parts parts = Parts::whole(code.numDevices(), type.getRank());
  sdy::MeshAttr mesh =
      sharding ? sdy::meshOf(op, sharding.getMesh()) : sdy::MeshAttr();
  if (mesh && mesh.numDevices() > 1) {
    SmallVector<StringAttr> axes;
    for (sdy::MeshAxisAttr axis : mesh.getAxes())
      axes.push_back(axis.getName());
    FailureOr<Parts> found = partsOf(op, sharding, axes, code.numDevices());
    if (failed(found))
      return failure();
    parts = *found;
  }
  std::optional<SmallVector<int64_t>> shape = parts.shapeOf(type.getShape());
  if (!shape || type.clone(*shape) != part)
    return op.emitOpError() << "cannot have " << part << " as a part of "
                            << whole << ", by the sharding of the latter";
  return Cutting{sharding, std::move(parts)};
}

/// The whole of the parts that processes have; of replicas the first one's.
Value RunWhole::joined(ValueRange values, const Parts &parts) {
  std::map<SmallVector<int64_t>, Value> pieces;
  for (auto [device, at] : llvm::enumerate(parts.of))
    pieces.insert({at, values[device]});
  for (int64_t dim = int64_t(parts.counts.size()) - 1; dim >= 0; --dim) {
    std::map<SmallVector<int64_t>, SmallVector<Value>> rows;
    for (auto &[at, piece] : pieces) {
      SmallVector<int64_t> key(at);
      key[dim] = 0;
      rows[key].push_back(piece); // pieces are in order of `dim`
    }
    pieces.clear();
    for (auto &[key, row] : rows) {
      SmallVector<int64_t> shape(tensorOf(row[0]).getShape());
      shape[dim] *= int64_t(row.size());
      pieces[key] = row.size() == 1
                        ? row[0]
                        : stablehlo::ConcatenateOp::create(
                              code.b, tensorOf(row[0]).clone(shape), row, dim)
                              .getResult();
    }
  }
  return pieces.begin()->second;
}

Value RunWhole::constrained(Value whole, sdy::TensorShardingAttr sharding) {
  if (!sharding)
    return whole;
  return sdy::ShardingConstraintOp::create(code.b, whole.getType(), whole,
                                           sharding);
}

Value RunWhole::partOf(Value whole, Type type, const Parts &parts,
                       int64_t process) {
  if (parts.isWhole())
    return whole;
  auto part = cast<RankedTensorType>(type);
  SmallVector<int64_t> starts, limits, strides(part.getRank(), 1);
  for (auto [size, at] : llvm::zip_equal(part.getShape(), parts.of[process])) {
    starts.push_back(size * at);
    limits.push_back(size * (at + 1));
  }
  return stablehlo::SliceOp::create(code.b, part, whole, starts, limits,
                                    strides);
}

LogicalResult RunWhole::run() {
  int64_t processes = code.numDevices();
  int64_t inputs = function.getNumArguments();
  int64_t outputs = function.getNumResults();
  SmallVector<Value> wholes;
  for (int64_t k = 0; k < inputs; ++k) {
    SmallVector<Value> values;
    for (int64_t process = 0; process < processes; ++process)
      values.push_back(op.getOperand(process * inputs + k));
    FailureOr<Cutting> cut =
        cutting(function.getArgAttrOfType<sdy::TensorShardingAttr>(
                    k, sdy::shardingName),
                function.getArgumentTypes()[k], values[0].getType());
    if (failed(cut))
      return failure();
    wholes.push_back(constrained(joined(values, cut->parts), cut->sharding));
  }
  auto call = func::CallOp::create(code.b, function, wholes);
  for (int64_t k = 0; k < outputs; ++k) {
    FailureOr<Cutting> cut =
        cutting(function.getResultAttrOfType<sdy::TensorShardingAttr>(
                    k, sdy::shardingName),
                function.getResultTypes()[k], op.getResult(k).getType());
    if (failed(cut))
      return failure();
    Value whole = constrained(call.getResult(k), cut->sharding);
    for (int64_t process = 0; process < processes; ++process) {
      Value result = op.getResult(process * outputs + k);
      result.replaceAllUsesWith(
          partOf(whole, result.getType(), cut->parts, process));
    }
  }
  op.erase();
  return success();
}

LogicalResult runWhole(interpreter::RunParallelOp op, func::FuncOp function,
                       DeviceCode &code) {
  return RunWhole(op, function, code).run();
}

//===----------------------------------------------------------------------===//
// Code of one device
//===----------------------------------------------------------------------===//

/// A region that adds.
static void fillSum(OpBuilder b, Region &region, RankedTensorType type) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  OpBuilder::InsertionGuard guard(b);
  Location loc = region.getLoc();
  Block *block = b.createBlock(&region, {}, {scalar, scalar}, {loc, loc});
  Value sum = stablehlo::AddOp::create(b, loc, scalar, block->getArgument(0),
                                       block->getArgument(1));
  stablehlo::ReturnOp::create(b, loc, sum);
}

LogicalResult reduceOnEach(func::FuncOp function) {
  SmallVector<sdy::AllReduceOp> ops;
  function.walk([&](sdy::AllReduceOp op) { ops.push_back(op); });
  for (sdy::AllReduceOp op : ops) {
    sdy::MeshAttr mesh = sdy::meshOf(op, op.getOutSharding().getMesh());
    auto groups = mesh ? groupsAlong(mesh, op.getAxes().getAxes())
                       : std::optional<spmd::DeviceGroups>();
    if (op.getReductionKind() || !groups)
      return ir::emitUnsupported(op)
             << "of tensors of processes adds along axes of a mesh in this "
                "version";
    OpBuilder b(op);
    SmallVector<int64_t> members;
    for (const auto &group : *groups)
      llvm::append_range(members, group);
    auto type = cast<RankedTensorType>(op.getType());
    auto table = RankedTensorType::get(
        {int64_t(groups->size()), int64_t(groups->front().size())},
        b.getI64Type());
    auto reduce = stablehlo::AllReduceOp::create(
        b, op.getLoc(), TypeRange(type), op->getOperands(),
        DenseIntElementsAttr::get(table, members),
        stablehlo::ChannelHandleAttr::get(b.getContext(), 1, 0), true);
    fillSum(b, reduce.getComputation(), type);
    op->replaceAllUsesWith(reduce);
    op.erase();
  }
  return success();
}

} // namespace mgpu::conversion
