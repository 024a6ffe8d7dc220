// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/mpmd/MemoryKinds.h"
#include "dialect/conversion/mpmd/MeshAssignment.h"
#include "dialect/conversion/mpmd/PlainOps.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_ASSIGNMESHES
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

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
