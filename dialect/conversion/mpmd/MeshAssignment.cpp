// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/mpmd/MeshAssignment.h"

#include "dialect/conversion/Passes.h"
#include "dialect/conversion/mpmd/MemoryKinds.h"
#include "dialect/conversion/mpmd/PlainOps.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/spmd/SpmdDialect.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

llvm::SetVector<Value> usedBy(Operation *op) {
  llvm::SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  return used;
}

//===----------------------------------------------------------------------===//
// Where values are
//===----------------------------------------------------------------------===//

Type MeshAssignment::typeOn(StringRef mesh, Value value) const {
  return mpmd::MeshTensorType::get(value.getContext(), mesh,
                                   globalTypeOf(value.getType()));
}

/// Whether the mesh's devices can share a tensor of this shape so.
static bool fits(sdy::TensorShardingAttr sharding, ShapedType type,
                 sdy::MeshAttr mesh) {
  if (!sharding || !sdy::faultOf(sharding, type, mesh).empty())
    return false;
  for (auto [dim, each] : llvm::enumerate(sharding.getDims())) {
    int64_t parts = 1;
    for (sdy::AxisRefAttr axis : each.getAxes())
      parts *= axis.sizeIn(mesh);
    if (type.getDimSize(dim) % parts != 0)
      return false;
  }
  return true;
}

/// On `mesh`, with the sharding that the program says where the mesh can have
/// it, and in the memory that it says.
Type MeshAssignment::saidType(StringRef mesh, RankedTensorType type,
                              Attribute sharding, Attribute memory) const {
  auto given = dyn_cast_or_null<sdy::TensorShardingAttr>(sharding);
  if (!fits(given, type, topology.find(mesh)))
    given = {};
  auto kind = dyn_cast_or_null<StringAttr>(memory);
  if (kind && kind != mpmd::hostMemory)
    kind = {};
  return mpmd::MeshTensorType::get(topology.getContext(), mesh, type, given,
                                   kind);
}

void MeshAssignment::place(Value value, StringRef mesh, Value made) {
  placed[{value, mesh}] = made;
  homes.try_emplace(value, mesh);
}

Value MeshAssignment::sourceOf(Value value) const {
  while (Value source = same.lookup(value))
    value = source;
  return value;
}

/// Whether no mesh was chosen for `op` yet.
bool MeshAssignment::isOpen(Operation *op) const {
  return op && op->getNumResults() > 0 && !homes.contains(op->getResult(0));
}

StringRef MeshAssignment::homeOf(Value value) {
  value = sourceOf(value);
  if (StringRef home = homes.lookup(value); !home.empty())
    return home;
  StringRef found;
  llvm::SetVector<Operation *> open;
  if (Operation *op = value.getDefiningOp())
    open.insert(op);
  for (size_t k = 0; k < open.size(); ++k)
    for (Value used : usedBy(open[k])) {
      used = sourceOf(used);
      StringRef home = homes.lookup(used);
      if (home.empty() && used.getDefiningOp())
        open.insert(used.getDefiningOp());
      if (!home.empty() && !found.empty() && found != home)
        return {};
      if (!home.empty())
        found = home;
    }
  return found;
}

Value MeshAssignment::demand(Value value, StringRef mesh) {
  value = sourceOf(value);
  if (Value made = placed.lookup({value, mesh}))
    return made;
  StringRef home = homes.lookup(value);
  if (home.empty()) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      const unsigned k = argument.getArgNumber();
      BlockArgument own = function.front().getArgument(k);
      own.setType(saidType(mesh, globalTypeOf(argument.getType()),
                           function.getArgAttr(k, sdy::shardingName),
                           function.getArgAttr(k, mpmd::memoryKindName)));
      place(value, mesh, own);
      return own;
    }
    StringRef target = homeOf(value);
    auto named = value.getDefiningOp<mpmd::NamedComputationOp>();
    if (named && target.empty() && isGuess)
      guessed = named;
    if (target.empty())
      target = mesh;
    if (named)
      emitNamed(named, target);
    else
      emitInferred(value.getDefiningOp(), target);
    return demand(value, mesh);
  }
  Value made = mpmd::TransferOp::create(b, value.getLoc(), typeOn(mesh, value),
                                        placed.lookup({value, home}));
  placed[{value, mesh}] = made;
  return made;
}

//===----------------------------------------------------------------------===//
// The program, in its order
//===----------------------------------------------------------------------===//

void MeshAssignment::takeArguments(Block &old, Block &body) {
  for (BlockArgument argument : old.getArguments()) {
    Value own = body.addArgument(argument.getType(), argument.getLoc());
    auto type = dyn_cast<mpmd::MeshTensorType>(argument.getType());
    if (!type)
      continue;
    Attribute memory =
        function.getArgAttr(argument.getArgNumber(), mpmd::memoryKindName);
    if (memory && !type.getMemoryKind())
      own.setType(saidType(type.getMeshName(), type.getGlobalTensorType(),
                           type.getSharding(), memory));
    place(argument, type.getMeshName(), own);
  }
}

LogicalResult MeshAssignment::take(Operation *op) {
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (!globalTypeOf(type))
        return ir::emitUnsupported(op) << "has a value of type " << type
                                       << "; a program over several meshes "
                                          "computes with ranked tensors";
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<mpmd::UnassignOp, mpmd::BroadcastOp>([&](auto each) {
        same[each.getResult()] = each.getTensor();
        return success();
      })
      .Case([&](mpmd::AssignOp each) {
        StringRef mesh = each.getType().getMeshName();
        place(each.getResult(), mesh, demand(each.getTensor(), mesh));
        return success();
      })
      .Case([&](mpmd::NamedTensorOp each) {
        auto mesh = meshes.find(each.getName());
        if (mesh == meshes.end())
          same[each.getResult()] = each.getTensor();
        else
          place(each.getResult(), mesh->second,
                demand(each.getTensor(), mesh->second));
        return success();
      })
      .Case([&](mpmd::NamedComputationOp each) { return takeNamed(each); })
      .Case<mpmd::FragmentOp, mpmd::TransferOp>([&](auto) {
        takeAssigned(op);
        return success();
      })
      .Case([](sdy::ShardingGroupOp) {
        return success(); // it says how values are shared, not where
      })
      .Default([&](Operation *) -> LogicalResult {
        if (op->getNumResults() > 0 && isMemoryEffectFree(op))
          return success(); // where its results are asked for
        return ir::emitUnsupported(op)
               << "does more than give tensors, so that a mesh must be said "
                  "for "
                  "it: put it into an mpmd.named_computation";
      });
}

/// Where nothing names a mesh for a computation, it runs as operations without
/// one do.
LogicalResult MeshAssignment::takeNamed(mpmd::NamedComputationOp op) {
  auto found = meshes.find(op.getName());
  if (found != meshes.end())
    emitNamed(op, found->second);
  else if (topology.getMeshes().size() == 1)
    emitNamed(op, topology.getMeshes()[0].getName());
  else if (op->getNumResults() == 0 || !isMemoryEffectFree(op))
    return refuseNamed(op);
  return success();
}

/// A computation of which the mesh cannot be told.
LogicalResult MeshAssignment::refuseNamed(mpmd::NamedComputationOp op) {
  std::string known;
  for (mpmd::NamedMeshAttr each : topology.getMeshes())
    known += (known.empty() ? "" : ", ") + each.getName().str();
  return op->emitOpError() << "has no mesh; say one with --assign "
                           << op.getName()
                           << "=MESH, as nothing that it takes, or that uses "
                              "its results, is on one; the meshes are "
                           << known;
}

void MeshAssignment::emitNamed(mpmd::NamedComputationOp op, StringRef mesh) {
  SmallVector<Value> operands;
  for (Value operand : op.getTensors())
    operands.push_back(demand(operand, mesh));
  SmallVector<Type> types = llvm::map_to_vector(
      op->getResults(), [&](Value result) { return typeOn(mesh, result); });
  auto fragment = mpmd::FragmentOp::create(
      b, op->getLoc(), types, operands, b.getArrayAttr(op.getOrigin()),
      b.getStringAttr(mesh), IntegerAttr(), sdy::TensorShardingPerValueAttr(),
      sdy::TensorShardingPerValueAttr());
  fragment->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  IRMapping map;
  op.getRegion().cloneInto(&fragment.getRegion(), map);
  for (auto [result, made] :
       llvm::zip(op->getResults(), fragment->getResults()))
    place(result, mesh, made);
}

/// Takes the meshes of values that have some already.
void MeshAssignment::takeAssigned(Operation *op) {
  IRMapping map;
  for (Value operand : op->getOperands())
    map.map(
        operand,
        demand(operand,
               cast<mpmd::MeshTensorType>(operand.getType()).getMeshName()));
  Operation *made = b.clone(*op, map);
  for (auto [result, own] : llvm::zip(op->getResults(), made->getResults()))
    place(result, cast<mpmd::MeshTensorType>(result.getType()).getMeshName(),
          own);
}

/// The type that result `k` has: that of the argument whose next state it is,
/// else with the sharding and in the memory that the program says.
Type MeshAssignment::resultType(unsigned k, Value made) {
  auto type = cast<mpmd::MeshTensorType>(made.getType());
  if (auto alias =
          function.getResultAttrOfType<IntegerAttr>(k, spmd::aliasName))
    return function.front().getArgument(alias.getInt()).getType();
  Attribute sharding = function.getResultAttr(k, sdy::shardingName);
  Attribute memory = function.getResultAttr(k, mpmd::memoryKindName);
  if (!sharding && !memory)
    return type;
  return saidType(type.getMeshName(), type.getGlobalTensorType(),
                  sharding ? sharding : type.getSharding(),
                  memory ? memory : type.getMemoryKind());
}

LogicalResult MeshAssignment::giveResults(Operation *end) {
  SmallVector<Value> results;
  StringRef first = topology.getMeshes()[0].getName();
  for (Value value : end->getOperands()) {
    StringRef mesh = homeOf(value);
    if (auto type = dyn_cast<mpmd::MeshTensorType>(value.getType()))
      mesh = type.getMeshName();
    isGuess = mesh.empty();
    results.push_back(demand(value, isGuess ? first : mesh));
  }
  if (guessed)
    return refuseNamed(guessed);
  for (BlockArgument argument : end->getBlock()->getArguments())
    if (!homes.contains(argument)) // nobody uses it
      demand(argument, first);
  for (auto [k, made] : llvm::enumerate(results))
    if (Type type = resultType(k, made); type != made.getType())
      made = mpmd::TransferOp::create(b, end->getLoc(), type, made);
  func::ReturnOp::create(b, end->getLoc(), results);
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.front().getArgumentTypes(),
      ValueRange(results).getTypes()));
  return success();
}

LogicalResult MeshAssignment::run() {
  Block &old = function.front();
  for (Type type : old.getArgumentTypes())
    if (!globalTypeOf(type))
      return ir::emitUnsupported(function)
             << "has an argument of type " << type
             << "; a program over several meshes takes ranked tensors";
  Block *body = new Block;
  function.getBody().push_front(body);
  takeArguments(old, *body);
  b.setInsertionPointToEnd(body);
  for (Operation &op : old.without_terminator())
    if (failed(take(&op)))
      return failure();
  if (failed(giveResults(old.getTerminator())))
    return failure();
  old.dropAllReferences();
  old.erase();
  return success();
}

#define GEN_PASS_DEF_ASSIGNMESHES
#include "dialect/conversion/Passes.h.inc"

namespace {

/// The meshes of computations by the function's attribute, and then by the text
/// "f1=m1,f2=m2" of --assign.
FailureOr<llvm::StringMap<std::string>>
readNames(func::FuncOp function, StringRef text, mpmd::TopologyAttr topology) {
  llvm::StringMap<std::string> meshes;
  if (auto said = function->getAttrOfType<DictionaryAttr>(mpmd::assignmentName))
    for (NamedAttribute each : said) {
      auto mesh = dyn_cast<StringAttr>(each.getValue());
      if (!mesh || !topology.find(mesh))
        return function.emitError()
               << "has an " << mpmd::assignmentName << " of '"
               << each.getName().getValue() << "' to " << each.getValue()
               << ", which is no mesh of its topology";
      meshes[each.getName()] = mesh.str();
    }
  SmallVector<StringRef> pairs;
  text.split(pairs, ',', -1, /*KeepEmpty=*/false);
  for (StringRef pair : pairs) {
    auto [name, mesh] = pair.split('=');
    if (name.empty() || !topology.find(mesh)) {
      std::string known;
      for (mpmd::NamedMeshAttr each : topology.getMeshes())
        known += (known.empty() ? "" : ", ") + each.getName().str();
      return function.emitError()
             << "cannot take '" << pair << "' of --assign; it is NAME=MESH, "
             << "and the meshes are " << known;
    }
    meshes[name] = mesh.str();
  }
  return meshes;
}

/// The mesh that something in a body has a name for; empty without one.
StringRef meshSaidFor(Operation *op, const llvm::StringMap<std::string> &all) {
  StringRef name;
  if (auto computation = dyn_cast<mpmd::NamedComputationOp>(op))
    name = computation.getName();
  else if (auto tensor = dyn_cast<mpmd::NamedTensorOp>(op))
    name = tensor.getName();
  else if (auto fragment = dyn_cast<mpmd::FragmentOp>(op))
    return fragment.getMeshName();
  auto found = all.find(name);
  return found == all.end() ? StringRef() : StringRef(found->second);
}

/// A computation inside another one or a fragment is a part of that, whatever
/// its name is. Fails with an error where it is said to be on another mesh.
LogicalResult inlineNested(func::FuncOp function,
                           const llvm::StringMap<std::string> &meshes) {
  SmallVector<Operation *> nested; // inner ones first
  auto isNested = [&](Operation *op) {
    return isa_and_nonnull<mpmd::MpmdDialect>(op->getDialect()) &&
           !isa<mpmd::ReturnOp>(op) && op->getParentOp() != function;
  };
  auto walked = function.walk([&](Operation *op) {
    if (!isNested(op))
      return WalkResult::advance();
    nested.push_back(op);
    StringRef own = meshSaidFor(op, meshes);
    for (Operation *outer = op->getParentOp(); outer != function;
         outer = outer->getParentOp()) {
      StringRef other = meshSaidFor(outer, meshes);
      if (own.empty() || other.empty() || own == other)
        continue;
      InFlightDiagnostic error = op->emitOpError()
                                 << "is on mesh '" << own
                                 << "', and stands in work of mesh '" << other
                                 << "'";
      error.attachNote(outer->getLoc()) << "this is that work";
      return WalkResult(std::move(error));
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  llvm::for_each(nested, makePlain);
  return success();
}

struct AssignMeshes : impl::AssignMeshesBase<AssignMeshes> {
  using AssignMeshesBase::AssignMeshesBase;

  /// Without meshes nothing can be assigned to one.
  void checkNone(func::FuncOp function) {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isa_and_nonnull<mpmd::MpmdDialect>(op->getDialect()))
        return WalkResult::advance();
      ir::emitUnsupported(op)
          << "stands in a function without a 'topology'; give it that "
             "attribute, with a mesh";
      signalPassFailure();
      return WalkResult::interrupt();
    });
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal())
      return markAllAnalysesPreserved();
    mpmd::TopologyAttr topology = mpmd::topologyOf(function);
    if (!topology) {
      checkNone(function);
      return markAllAnalysesPreserved();
    }
    if (!function.getBody().hasOneBlock() || topology.getMeshes().empty()) {
      ir::emitUnsupported(function)
          << "branches between blocks, or has no mesh in its topology";
      return signalPassFailure();
    }
    auto meshes = readNames(function, assign, topology);
    function->removeAttr(mpmd::assignmentName);
    if (failed(meshes) || failed(inlineNested(function, *meshes)) ||
        failed(takeMemoryKinds(function)) ||
        failed(MeshAssignment(function, topology, *meshes).run()))
      signalPassFailure();
  }
};

} // namespace

} // namespace mgpu::conversion
