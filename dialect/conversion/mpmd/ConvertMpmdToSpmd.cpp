// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/mpmd/PipelineWorks.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/sdy/FineAxes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTMPMDTOSPMD
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

// Which devices a mesh has, and which part of a tensor each of them.

namespace {

/// The devices of a program's meshes: numbered in the order of the topology,
/// and in a mesh row-major.
class MeshLayouts {
public:
  /// Takes the topology of `function`, and the shardings in it. Fails with an
  /// error there.
  mlir::LogicalResult take(mlir::func::FuncOp function);

  /// Which part of a tensor of `type` each device of its mesh has. Fails with
  /// an error at `op`, where the type is no tensor on a mesh.
  mlir::FailureOr<spmd::LayoutAttr> layoutOf(mlir::Operation *op,
                                             mlir::Type type) const;
  /// The sharding of `type`, or `otherwise` if it has none: closed, so that it
  /// stays. Its mesh has the devices in order.
  sdy::TensorShardingAttr shardingOf(mpmd::MeshTensorType type,
                                     sdy::TensorShardingAttr otherwise) const;
  int64_t numDevices(llvm::StringRef mesh) const {
    return meshOf(mesh).axes.getMesh().numDevices();
  }
  /// The number that the program gives to each device, where these are others:
  /// some mesh lists its devices. Else empty.
  llvm::SmallVector<int64_t> order() const;

private:
  struct Mesh {
    sdy::FineAxes axes;
    llvm::ArrayRef<int64_t> deviceIds;
    int64_t first = 0;
    llvm::SmallVector<int64_t> sizes; ///< by fine axis; at least one
  };
  const Mesh &meshOf(llvm::StringRef name) const {
    return meshes.find(name)->second;
  }

  llvm::StringMap<Mesh> meshes;
  int64_t count = 0;
};

} // namespace

LogicalResult MeshLayouts::take(func::FuncOp function) {
  for (mpmd::NamedMeshAttr each : mpmd::topologyOf(function).getMeshes()) {
    sdy::MeshAttr inOrder = sdy::MeshAttr::get(
        function.getContext(), each.getMesh().getAxes(), ArrayRef<int64_t>());
    meshes.try_emplace(
        each.getName(),
        Mesh{sdy::FineAxes(inOrder), each.getMesh().getDeviceIds(), count, {}});
    count += inOrder.numDevices();
    if (count > spmd::mostDevices)
      return ir::emitUnsupported(function)
             << "has more than " << spmd::mostDevices << " devices";
  }
  auto takeTypes = [&](TypeRange types) {
    for (Type type : types)
      if (auto tensor = dyn_cast<mpmd::MeshTensorType>(type);
          tensor && tensor.getSharding())
        meshes.find(tensor.getMeshName())
            ->second.axes.take(tensor.getSharding());
  };
  takeTypes(function.getArgumentTypes());
  takeTypes(function.getResultTypes());
  function.walk([&](Operation *op) { takeTypes(op->getResultTypes()); });
  for (auto &[name, mesh] : meshes) {
    if (StringAttr axis = mesh.axes.finish())
      return ir::emitUnsupported(function)
             << "has shardings that cut axis " << axis << " of mesh '" << name
             << "' in ways that do not fit each other";
    mesh.sizes.assign(mesh.axes.sizes().begin(), mesh.axes.sizes().end());
    if (mesh.sizes.empty())
      mesh.sizes.push_back(1);
  }
  return success();
}

FailureOr<spmd::LayoutAttr> MeshLayouts::layoutOf(Operation *op,
                                                  Type type) const {
  auto tensor = dyn_cast<mpmd::MeshTensorType>(type);
  if (!tensor)
    return ir::emitUnsupported(op)
           << "has a value of type " << type << "; only tensors on meshes run";
  const Mesh &mesh = meshOf(tensor.getMeshName());
  SmallVector<Axes> cuts(tensor.getGlobalTensorType().getRank());
  if (tensor.getSharding() && !tensor.getSharding().getDims().empty())
    cuts = mesh.axes.cutsOf(tensor.getSharding());
  spmd::LayoutAttr local = layoutOfCuts(op->getContext(), mesh.sizes, cuts);
  return spmd::LayoutAttr::get(op->getContext(), local.getMesh(),
                               local.getSplit(), mesh.first);
}

sdy::TensorShardingAttr
MeshLayouts::shardingOf(mpmd::MeshTensorType type,
                        sdy::TensorShardingAttr otherwise) const {
  MLIRContext *context = type.getContext();
  sdy::TensorShardingAttr own =
      type.getSharding() ? type.getSharding() : otherwise;
  SmallVector<sdy::DimensionShardingAttr> dims(
      type.getGlobalTensorType().getRank(),
      sdy::DimensionShardingAttr::get(context, {}, /*isClosed=*/true, -1));
  if (own)
    for (auto [dim, given] : llvm::zip(dims, own.getDims()))
      dim = sdy::DimensionShardingAttr::get(context, given.getAxes(),
                                            /*isClosed=*/true, -1);
  return sdy::TensorShardingAttr::get(context,
                                      meshOf(type.getMeshName()).axes.getMesh(),
                                      dims, {}, {}, nullptr);
}

SmallVector<int64_t> MeshLayouts::order() const {
  SmallVector<int64_t> numbers = llvm::to_vector(llvm::seq<int64_t>(0, count));
  bool isListed = false;
  for (const auto &[name, mesh] : meshes)
    if (int64_t(mesh.deviceIds.size()) == mesh.axes.getMesh().numDevices() &&
        mesh.deviceIds.size() > 1)
      for (auto [k, id] : llvm::enumerate(mesh.deviceIds)) {
        numbers[mesh.first + int64_t(k)] = mesh.first + id;
        isListed = true;
      }
  return isListed ? numbers : SmallVector<int64_t>();
}

namespace {

/// A device's part stands for a tensor on a mesh. One in the hosts' memory is
/// there once, and whole.
class MpmdToSpmd {
public:
  MpmdToSpmd(ModuleOp module, func::FuncOp function)
      : symbols(module), function(function), b(function.getContext()) {}
  LogicalResult run();

private:
  void noteWorks();
  LogicalResult convertSignature();
  LogicalResult convert(Operation *op);
  LogicalResult convertFragment(mpmd::FragmentOp op);
  LogicalResult convertTransfer(mpmd::TransferOp op);
  LogicalResult convertReturn(Operation *end);
  FailureOr<func::FuncOp> outline(mpmd::FragmentOp op);
  void setShardings(func::FuncOp made, mpmd::FragmentOp op);
  Value onDevices(Location loc, Value whole, spmd::LayoutAttr layout);
  Value onHost(Location loc, Value part, RankedTensorType whole,
               spmd::LayoutAttr layout);
  spmd::CollectOp copied(Location loc, Value whole, spmd::LayoutAttr layout);
  Location marked(Location loc, Operation *fragment) const;

  SymbolTable symbols;
  func::FuncOp function;
  OpBuilder b;
  MeshLayouts layouts;
  IRMapping map;
  llvm::DenseMap<Operation *, mpmd::WorkAttr> works; ///< by fragment
  unsigned numFragments = 0;
};

bool isOnHost(Type type) {
  auto tensor = dyn_cast<mpmd::MeshTensorType>(type);
  return tensor && tensor.isOnHost();
}

RankedTensorType wholeOf(Type type) {
  return cast<mpmd::MeshTensorType>(type).getGlobalTensorType();
}

//===----------------------------------------------------------------------===//
// Works of a pipeline
//===----------------------------------------------------------------------===//

void MpmdToSpmd::noteWorks() {
  const Pipeline pipeline = findPipeline(function);
  for (const Pipeline::Mesh &mesh : pipeline.meshes)
    for (const auto &[work, fragments] : mesh.works)
      for (Operation *op : fragments) {
        auto half = op->getAttrOfType<IntegerAttr>(halfName);
        works[op] = mpmd::WorkAttr::get(b.getContext(), kindOf(work.kind),
                                        work.microbatch, work.stage,
                                        half ? half.getInt() : 0);
      }
  // A repeated computation belongs to the work that needs it.
  for (Operation &op : llvm::reverse(function.front()))
    if (op.hasAttr(rematName))
      for (Operation *user : op.getUsers())
        if (mpmd::WorkAttr work = works.lookup(user))
          works[&op] = work;
}

/// Names the work of the fragment, if it is one of a pipeline. A value's name
/// stays the outermost part.
Location MpmdToSpmd::marked(Location loc, Operation *fragment) const {
  mpmd::WorkAttr work = works.lookup(fragment);
  if (!work)
    return loc;
  if (auto name = dyn_cast<NameLoc>(loc))
    return NameLoc::get(
        name.getName(),
        FusedLoc::get(b.getContext(), {name.getChildLoc()}, work));
  return FusedLoc::get(b.getContext(), {loc}, work);
}

//===----------------------------------------------------------------------===//
// The hosts' memory
//===----------------------------------------------------------------------===//

Value MpmdToSpmd::onDevices(Location loc, Value whole,
                            spmd::LayoutAttr layout) {
  auto type = cast<RankedTensorType>(whole.getType());
  Value init =
      emptyPart(b, loc, type.getShape(), type.getElementType(), layout);
  return spmd::DistributeOp::create(b, loc, TypeRange(init.getType()), whole,
                                    init, layout)
      ->getResult(0);
}

Value MpmdToSpmd::onHost(Location loc, Value part, RankedTensorType whole,
                         spmd::LayoutAttr layout) {
  Value init =
      tensor::EmptyOp::create(b, loc, whole.getShape(), whole.getElementType());
  return spmd::CollectOp::create(b, loc, TypeRange(whole), part, init, layout)
      ->getResult(0);
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// Arguments become whole tensors, of which devices take their parts. The ones
/// on meshes stay, for their types, until the body is converted.
LogicalResult MpmdToSpmd::convertSignature() {
  Block &block = function.front();
  b.setInsertionPointToStart(&block);
  SmallVector<Type> inputs, results;
  for (BlockArgument argument : llvm::to_vector(block.getArguments())) {
    FailureOr<spmd::LayoutAttr> layout =
        layouts.layoutOf(function, argument.getType());
    if (failed(layout))
      return failure();
    RankedTensorType whole = wholeOf(argument.getType());
    Value given = block.addArgument(whole, argument.getLoc());
    map.map(argument, given);
    if (!isOnHost(argument.getType()))
      map.map(argument,
              spmd::FullToShardOp::create(
                  b, argument.getLoc(),
                  whole.clone(layout->shardShape(whole.getShape())), given)
                  .getShard());
    inputs.push_back(whole);
    function.setArgAttr(argument.getArgNumber(), spmd::layoutName, *layout);
    for (StringRef name : {sdy::shardingName, mpmd::memoryKindName})
      function.removeArgAttr(argument.getArgNumber(), name);
  }
  for (auto [k, type] : llvm::enumerate(function.getResultTypes())) {
    FailureOr<spmd::LayoutAttr> layout = layouts.layoutOf(function, type);
    if (failed(layout))
      return failure();
    results.push_back(wholeOf(type));
    function.setResultAttr(k, spmd::layoutName, *layout);
    for (StringRef name : {sdy::shardingName, mpmd::memoryKindName})
      function.removeResultAttr(k, b.getStringAttr(name));
  }
  function.setFunctionType(b.getFunctionType(inputs, results));
  return success();
}

/// Takes from the fragment the shardings of its values, where types do not have
/// them.
void MpmdToSpmd::setShardings(func::FuncOp made, mpmd::FragmentOp op) {
  auto given = [](std::optional<sdy::TensorShardingPerValueAttr> list,
                  size_t k) {
    return list ? list->getShardings()[k] : sdy::TensorShardingAttr();
  };
  for (auto [k, type] : llvm::enumerate(op->getOperandTypes()))
    made.setArgAttr(k, sdy::shardingName,
                    layouts.shardingOf(cast<mpmd::MeshTensorType>(type),
                                       given(op.getInShardings(), k)));
  for (auto [k, type] : llvm::enumerate(op->getResultTypes()))
    made.setResultAttr(k, sdy::shardingName,
                       layouts.shardingOf(cast<mpmd::MeshTensorType>(type),
                                          given(op.getOutShardings(), k)));
}

/// The fragment's body as a function on whole tensors.
FailureOr<func::FuncOp> MpmdToSpmd::outline(mpmd::FragmentOp op) {
  auto global = [](TypeRange types) {
    return llvm::map_to_vector(types,
                               [](Type type) -> Type { return wholeOf(type); });
  };
  std::string name = op.getMeshName().str();
  for (auto origin : op.getOrigin().getAsRange<mpmd::UserOriginAttr>())
    name += "." + origin.getUserName().getValue().str();
  name += "." + std::to_string(numFragments++);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(function);
  auto made =
      func::FuncOp::create(b, op.getLoc(), name,
                           b.getFunctionType(global(op->getOperandTypes()),
                                             global(op->getResultTypes())));
  made.setPrivate();
  symbols.insert(made);
  made.getBody().takeBody(op.getRegion());
  Operation *end = made.front().getTerminator();
  b.setInsertionPoint(end);
  func::ReturnOp::create(b, end->getLoc(), end->getOperands());
  end->erase();
  if (works.contains(op))
    made.walk(
        [&](Operation *inner) { inner->setLoc(marked(inner->getLoc(), op)); });
  if (layouts.numDevices(op.getMeshName()) > 1)
    setShardings(made, op);
  return made;
}

LogicalResult MpmdToSpmd::convertFragment(mpmd::FragmentOp op) {
  SmallVector<Attribute> in, out;
  SmallVector<Type> types;
  SmallVector<Value> inputs;
  Location loc = marked(op.getLoc(), op);
  for (Value operand : op->getOperands()) {
    FailureOr<spmd::LayoutAttr> layout =
        layouts.layoutOf(op, operand.getType());
    if (failed(layout))
      return failure();
    in.push_back(*layout);
    inputs.push_back(map.lookup(operand));
    if (isOnHost(operand.getType()))
      inputs.back() = onDevices(loc, inputs.back(), *layout);
  }
  for (Type type : op->getResultTypes()) {
    FailureOr<spmd::LayoutAttr> layout = layouts.layoutOf(op, type);
    if (failed(layout))
      return failure();
    RankedTensorType whole = wholeOf(type);
    types.push_back(whole.clone(layout->shardShape(whole.getShape())));
    out.push_back(*layout);
  }
  if (out.empty())
    return success(); // it gives nothing
  FailureOr<func::FuncOp> callee = outline(op);
  if (failed(callee))
    return failure();
  auto call = spmd::CallOp::create(b, loc, types, callee->getName(), inputs,
                                   b.getArrayAttr(in), b.getArrayAttr(out));
  if (op->hasAttr(rematName)) // else it would be one with what it repeats
    call->setAttr(rematName, b.getUnitAttr());
  for (auto [k, result] : llvm::enumerate(op->getResults())) {
    Value made = call->getResult(k);
    if (isOnHost(result.getType()))
      made = onHost(loc, made, wholeOf(result.getType()),
                    cast<spmd::LayoutAttr>(out[k]));
    map.map(result, made);
  }
  return success();
}

/// Hosts share their memory, so that nothing goes from one to another.
LogicalResult MpmdToSpmd::convertTransfer(mpmd::TransferOp op) {
  FailureOr<spmd::LayoutAttr> from =
      layouts.layoutOf(op, op.getTensor().getType());
  FailureOr<spmd::LayoutAttr> to = layouts.layoutOf(op, op.getType());
  if (failed(from) || failed(to))
    return failure();
  const bool isFromHost = isOnHost(op.getTensor().getType());
  Value part = map.lookup(op.getTensor());
  RankedTensorType whole = op.getType().getGlobalTensorType();
  Location loc = marked(op.getLoc(), op.getTensor().getDefiningOp());
  if (isFromHost && !isOnHost(op.getType())) {
    part = onDevices(loc, part, *to);
  } else if (!isFromHost && isOnHost(op.getType())) {
    part = onHost(loc, part, whole, *from);
  } else if (!isFromHost && *from != *to) {
    Value init =
        emptyPart(b, loc, whole.getShape(), whole.getElementType(), *to);
    part = spmd::MoveOp::create(b, loc, TypeRange(init.getType()), part, init,
                                *from, *to, whole.getShape())
               ->getResult(0);
  }
  map.map(op.getResult(), part);
  return success();
}

/// `whole` in a buffer of its own.
spmd::CollectOp MpmdToSpmd::copied(Location loc, Value whole,
                                   spmd::LayoutAttr layout) {
  return onHost(loc, onDevices(loc, whole, layout),
                cast<RankedTensorType>(whole.getType()), layout)
      .getDefiningOp<spmd::CollectOp>();
}

/// A result in the hosts' memory is copied there for it alone: where it is the
/// next state of an argument, into that one, once nothing reads the last state.
LogicalResult MpmdToSpmd::convertReturn(Operation *end) {
  Location loc = end->getLoc();
  llvm::MapVector<unsigned, spmd::CollectOp> onHosts;
  llvm::SmallDenseSet<Operation *> given;
  auto layoutOfResult = [&](unsigned k) {
    return cast<spmd::LayoutAttr>(function.getResultAttr(k, spmd::layoutName));
  };
  for (OpOperand &returned : end->getOpOperands()) {
    unsigned k = returned.getOperandNumber();
    Type type = returned.get().getType();
    Value made = map.lookup(returned.get());
    if (isOnHost(type)) {
      auto collect = made.getDefiningOp<spmd::CollectOp>();
      if (!collect || !given.insert(collect).second)
        collect = copied(loc, made, layoutOfResult(k));
      onHosts[k] = collect;
    } else {
      returned.set(
          spmd::ShardToFullOp::create(b, loc, wholeOf(type), made).getFull());
    }
  }
  for (auto &[k, collect] : onHosts) {
    if (auto alias =
            function.getResultAttrOfType<IntegerAttr>(k, spmd::aliasName)) {
      Value state = function.front().getArgument(function.getNumArguments() +
                                                 alias.getInt());
      Operation *at = collect;
      if (llvm::any_of(state.getUsers(), [&](Operation *user) {
            return at->isBeforeInBlock(user);
          }))
        collect = copied(loc, collect->getResult(0), layoutOfResult(k));
      collect.getInitMutable().assign(state);
    }
    end->setOperand(k, collect->getResult(0));
  }
  return success();
}

LogicalResult MpmdToSpmd::convert(Operation *op) {
  b.setInsertionPoint(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](mpmd::FragmentOp each) { return convertFragment(each); })
      .Case([&](mpmd::TransferOp each) { return convertTransfer(each); })
      .Case([&](func::ReturnOp each) { return convertReturn(each); })
      .Default([&](Operation *) {
        return ir::emitUnsupported(op) << "stands outside a fragment; "
                                          "mpmd-assign-meshes gives it a mesh";
      });
}

LogicalResult MpmdToSpmd::run() {
  if (failed(layouts.take(function)))
    return failure();
  noteWorks();
  SmallVector<Operation *> ops;
  for (Operation &op : function.front())
    ops.push_back(&op);
  if (failed(convertSignature()))
    return failure();
  for (Operation *op : ops)
    if (failed(convert(op)))
      return failure();
  for (Operation *op : llvm::reverse(ArrayRef(ops).drop_back()))
    op->erase();
  function.front().eraseArguments(0, function.getNumArguments());
  function->removeAttr(mpmd::topologyName);
  if (SmallVector<int64_t> order = layouts.order(); !order.empty())
    function->setAttr(spmd::deviceOrderName, b.getDenseI64ArrayAttr(order));
  return success();
}

struct ConvertMpmdToSpmd : impl::ConvertMpmdToSpmdBase<ConvertMpmdToSpmd> {
  using ConvertMpmdToSpmdBase::ConvertMpmdToSpmdBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal() || !mpmd::topologyOf(function))
      return markAllAnalysesPreserved();
    if (failed(MpmdToSpmd(getOperation(), function).run()))
      signalPassFailure();
  }
};

} // namespace

} // namespace mgpu::conversion
