// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/sdy/ManualCode.h"
#include "dialect/conversion/sdy/TensorParts.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/stablehlo/Companions.h"

#include <map>

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTRUNPARALLELTOSDY
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

// interpreter.run_parallel of functions that Shardy annotates.

//===----------------------------------------------------------------------===//
// Parts and wholes
//===----------------------------------------------------------------------===//

namespace {

class RunWhole {
public:
  RunWhole(interpreter::RunParallelOp op, func::FuncOp function,
           DeviceCode &code)
      : op(op), function(function), code(code) {}
  LogicalResult run();

private:
  FailureOr<Cutting> cutting(DictionaryAttr attributes, Type whole, Type part);
  Value joined(ValueRange values, const Parts &parts);
  Value constrained(Value whole, const Cutting &cut);
  Value partOf(Value whole, Type type, const Parts &parts, int64_t process);

  interpreter::RunParallelOp op;
  func::FuncOp function;
  DeviceCode &code;
};

} // namespace

/// Fails where `part` is not what the sharding makes of `whole`.
FailureOr<Cutting> RunWhole::cutting(DictionaryAttr attributes, Type whole,
                                     Type part) {
  auto type = cast<RankedTensorType>(whole);
  FailureOr<Cutting> cut = cuttingOf(op, attributes, type, code.numDevices());
  if (failed(cut))
    return failure();
  std::optional<SmallVector<int64_t>> shape =
      cut->parts.shapeOf(type.getShape());
  if (!shape || type.clone(*shape) != part)
    return op.emitOpError() << "cannot have " << part << " as a part of "
                            << whole << ", by the sharding of the latter";
  return cut;
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

Value RunWhole::constrained(Value whole, const Cutting &cut) {
  if (cut.sharding)
    return sdy::ShardingConstraintOp::create(code.b, whole.getType(), whole,
                                             cut.sharding);
  spmd::LayoutAttr layout = cut.parts.isWhole()
                                ? spmd::LayoutAttr()
                                : layoutOf(code.b.getContext(), cut.parts);
  if (!layout)
    return whole;
  return spmd::LayoutConstraintOp::create(
      code.b, whole, layout, DenseI64ArrayAttr(), DenseI64ArrayAttr());
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
        cutting(function.getArgAttrDict(k), function.getArgumentTypes()[k],
                values[0].getType());
    if (failed(cut))
      return failure();
    wholes.push_back(constrained(joined(values, cut->parts), *cut));
  }
  auto call = func::CallOp::create(code.b, function, wholes);
  for (int64_t k = 0; k < outputs; ++k) {
    FailureOr<Cutting> cut =
        cutting(function.getResultAttrDict(k), function.getResultTypes()[k],
                op.getResult(k).getType());
    if (failed(cut))
      return failure();
    Value whole = constrained(call.getResult(k), *cut);
    for (int64_t process = 0; process < processes; ++process) {
      Value result = op.getResult(process * outputs + k);
      result.replaceAllUsesWith(
          partOf(whole, result.getType(), cut->parts, process));
    }
  }
  op.erase();
  return success();
}

/// Calls `function` for wholes that are joined from the processes' parts.
/// Fails with an error at `op` where its types are no such parts.
static LogicalResult runWhole(interpreter::RunParallelOp op,
                              func::FuncOp function, DeviceCode &code) {
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

/// Where no sharding cuts anything, processes may hold different tensors, and
/// sdy.all_reduce adds them. Fails with an error at one that does not suit.
static LogicalResult reduceOnEach(func::FuncOp function) {
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

namespace {

/// The one function that all processes run; null where there are several.
FlatSymbolRefAttr programOf(interpreter::RunParallelOp op) {
  auto first = cast<FlatSymbolRefAttr>(cast<ArrayAttr>(op.getPrograms()[0])[0]);
  for (Attribute row : op.getPrograms())
    for (Attribute program : cast<ArrayAttr>(row))
      if (program != first)
        return {};
  return first;
}

struct ConvertRunParallelToSdy
    : impl::ConvertRunParallelToSdyBase<ConvertRunParallelToSdy> {
  using ConvertRunParallelToSdyBase::ConvertRunParallelToSdyBase;

  void runOnOperation() override {
    SmallVector<interpreter::RunParallelOp> ops;
    getOperation().walk(
        [&](interpreter::RunParallelOp op) { ops.push_back(op); });
    if (ops.empty())
      return markAllAnalysesPreserved();
    for (interpreter::RunParallelOp op : ops)
      if (failed(convert(op)))
        return signalPassFailure();
  }

  LogicalResult convert(interpreter::RunParallelOp op);
  LogicalResult runOnEach(interpreter::RunParallelOp op, DeviceCode &code);
  sdy::TensorShardingPerValueAttr stacked(TypeRange locals);
  void setGrid(int64_t replicas, int64_t partitions);
  void addMesh(int64_t processes);
};

/// Shardings of tensors with a process in each entry of their first dimension.
sdy::TensorShardingPerValueAttr
ConvertRunParallelToSdy::stacked(TypeRange locals) {
  MLIRContext *context = &getContext();
  auto all = sdy::DimensionShardingAttr::get(
      context,
      {sdy::AxisRefAttr::get(context, StringAttr::get(context, "process"), 1,
                             0)},
      true, -1);
  auto none = sdy::DimensionShardingAttr::get(context, {}, true, -1);
  SmallVector<sdy::TensorShardingAttr> shardings;
  for (Type local : locals) {
    SmallVector<sdy::DimensionShardingAttr> dims(
        cast<RankedTensorType>(local).getRank() + 1, none);
    dims[0] = all;
    shardings.push_back(sdy::TensorShardingAttr::get(
        context, FlatSymbolRefAttr::get(context, "processes"), dims, {}, {},
        nullptr));
  }
  return sdy::TensorShardingPerValueAttr::get(context, shardings);
}

/// Says what the numbers of processes mean.
void ConvertRunParallelToSdy::setGrid(int64_t replicas, int64_t partitions) {
  ModuleOp module = getOperation();
  Builder b(&getContext());
  module->setAttr("mhlo.num_replicas", b.getI32IntegerAttr(replicas));
  module->setAttr("mhlo.num_partitions", b.getI32IntegerAttr(partitions));
}

/// A mesh of all processes.
void ConvertRunParallelToSdy::addMesh(int64_t processes) {
  ModuleOp module = getOperation();
  Builder b(&getContext());
  if (module.lookupSymbol("processes"))
    return;
  auto mesh = sdy::MeshAttr::get(
      &getContext(),
      {sdy::MeshAxisAttr::get(&getContext(), b.getStringAttr("process"),
                              processes)},
      {});
  OpBuilder at = OpBuilder::atBlockBegin(module.getBody());
  sdy::MeshOp::create(at, module.getLoc(), "processes", mesh);
}

/// `type` with a first dimension of `size`.
RankedTensorType withFirst(Type type, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape.insert(shape.begin(), size);
  return tensor.clone(shape);
}

LogicalResult ConvertRunParallelToSdy::convert(interpreter::RunParallelOp op) {
  int64_t replicas = op.getPrograms().size();
  int64_t partitions = cast<ArrayAttr>(op.getPrograms()[0]).size();
  int64_t processes = replicas * partitions;
  FlatSymbolRefAttr program = programOf(op);
  if (!program || op.getInfeed())
    return ir::emitUnsupported(op)
           << "runs several programs, or feeds them; this version takes one";
  auto isTensor = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  if (!llvm::all_of(op.getOperandTypes(), isTensor) ||
      !llvm::all_of(op.getResultTypes(), isTensor))
    return ir::emitUnsupported(op)
           << "takes or gives tokens or dynamic shapes, which this version "
              "does not read";
  DeviceCode code(op->getParentOfType<func::FuncOp>(), processes);
  code.b.setInsertionPoint(op);
  code.b.setLoc(op.getLoc());
  auto function = getOperation().lookupSymbol<func::FuncOp>(program);
  setGrid(replicas, partitions);
  if (function && isOverWholeTensors(function))
    return runWhole(op, function, code);
  addMesh(processes);
  if (function && failed(reduceOnEach(function)))
    return failure();
  return runOnEach(op, code);
}

/// The code of one device, for each of them.
LogicalResult ConvertRunParallelToSdy::runOnEach(interpreter::RunParallelOp op,
                                                 DeviceCode &code) {
  int64_t processes = code.numDevices();
  FlatSymbolRefAttr program = programOf(op);
  int64_t inputs = op.getNumOperands() / processes;
  int64_t outputs = op.getNumResults() / processes;

  SmallVector<Value> wholes;
  auto taken = llvm::to_vector(TypeRange(op.getInputs().take_front(inputs)));
  auto given = llvm::to_vector(TypeRange(op.getResults().take_front(outputs)));
  for (int64_t k = 0; k < inputs; ++k) {
    SmallVector<Value> parts;
    for (int64_t process = 0; process < processes; ++process) {
      Value own = op.getOperand(process * inputs + k);
      parts.push_back(
          code.reshape(own, withFirst(own.getType(), 1).getShape()));
    }
    wholes.push_back(stablehlo::ConcatenateOp::create(
        code.b, withFirst(taken[k], processes), parts, 0));
  }
  SmallVector<Type> results = llvm::map_to_vector(
      given, [&](Type type) -> Type { return withFirst(type, processes); });
  auto manual = sdy::ManualComputationOp::create(
      code.b, results, wholes, stacked(taken), stacked(given),
      sdy::ManualAxesAttr::get(&getContext(), code.b.getStringAttr("process")));
  Block *body = code.b.createBlock(&manual.getBody());
  SmallVector<Value> arguments, returned;
  for (Type type : taken)
    arguments.push_back(
        code.reshape(body->addArgument(withFirst(type, 1), op.getLoc()),
                     cast<RankedTensorType>(type).getShape()));
  auto call = func::CallOp::create(code.b, program, given, arguments);
  for (Value result : call.getResults())
    returned.push_back(
        code.reshape(result, withFirst(result.getType(), 1).getShape()));
  sdy::ReturnOp::create(code.b, returned);

  code.b.setInsertionPointAfter(manual);
  for (auto [index, result] : llvm::enumerate(op.getResults()))
    result.replaceAllUsesWith(
        code.entry(manual.getResult(index % outputs), index / outputs));
  op.erase();
  return success();
}

} // namespace

} // namespace mgpu::conversion
