// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/sdy/ManualCode.h"
#include "dialect/conversion/sdy/RunWhole.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/stablehlo/Companions.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTRUNPARALLELTOSDY
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

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
