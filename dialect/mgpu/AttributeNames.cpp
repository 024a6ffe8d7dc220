// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of mgpu's attributes on operations, arguments and results: MLIR
// keeps a word that nobody reads, and nothing would ever say so.
#include "dialect/mgpu/MgpuDialect.h"
#include "support/Spelling.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <vector>

using namespace mlir;
using namespace mgpu::ir;

bool mgpu::ir::isFactOfPasses(StringRef name) {
  static constexpr StringLiteral facts[] = {
      productName, attentionName, sparseName, clusterName, markName,
      "mgpu.dynamic_shared_bytes", "mgpu.fragment", "mgpu.launch_group",
      "mgpu.subgroup",
      // Facts of earlier versions, which say nothing any more.
      "mgpu.b_turned", "mgpu.matmul"};
  return llvm::is_contained(facts, name);
}

/// An error where none of `known` is the name; `of` is what has it.
static LogicalResult checkName(StringRef name, const std::string &of,
                               const std::vector<std::string> &known,
                               Location location) {
  if (llvm::is_contained(known, name))
    return success();
  return emitError(location) << of << " has no attribute '" << name << "'"
                             << mgpu::didYouMean(name.str(), known);
}

/// The operations that a mark may be on.
struct MarkPlace {
  Mark mark;
  StringLiteral named; ///< "is for ..."
  bool (*takes)(Operation *);
};

template <typename... Ops>
static bool isAny(Operation *op) {
  return isa<Ops...>(op);
}

static bool isIndex(Operation *op) {
  return op->getNumResults() == 1 && op->getResult(0).getType().isIndex();
}

static bool isForSm90(Operation *op) {
  const StringRef dialect = op->getName().getDialectNamespace();
  return dialect == "nvgpu" || dialect == "nvvm" ||
         isa<UnrealizedConversionCastOp>(op);
}

static constexpr MarkPlace markPlaces[] = {
    {Mark::ProductLoop, "'scf.for'", isAny<scf::ForOp>},
    {Mark::GlobalX, "operations that give an index", isIndex},
    {Mark::GlobalY, "operations that give an index", isIndex},
    {Mark::GlobalZ, "operations that give an index", isIndex},
    {Mark::Instruction, "operations of nvgpu and nvvm", isForSm90},
    {Mark::Meaning, "'scf.for' and 'scf.if'", isAny<scf::ForOp, scf::IfOp>},
    {Mark::WarpgroupProduct, "'scf.for'", isAny<scf::ForOp>},
    {Mark::WholeLoop, "'scf.for'", isAny<scf::ForOp>},
    {Mark::Sentence, "'cf.assert'", isAny<cf::AssertOp>},
    {Mark::Forwarded, "'mgpu.alloc'", isAny<AllocOp>},
    {Mark::DeviceOnly, "'mgpu.alloc'", isAny<AllocOp>},
    {Mark::Head, "'mgpu.get_device'", isAny<GetDeviceOp>},
    {Mark::InOrder, "functions", isAny<FunctionOpInterface>},
    {Mark::OneDevice, "functions and 'mgpu.create_communicator'",
     isAny<FunctionOpInterface, CreateCommunicatorOp>},
    {Mark::AwaitsOthers, "'mgpu.launch'", isAny<LaunchOp>},
    {Mark::Workgroup, "'memref.alloca'", isAny<memref::AllocaOp>},
    {Mark::SparseOperand, "'memref.extract_aligned_pointer_as_index'",
     isAny<memref::ExtractAlignedPointerAsIndexOp>},
};

static LogicalResult verifyMark(Operation *op, Attribute attribute) {
  auto marks = dyn_cast<MarkAttr>(attribute);
  if (!marks)
    return op->emitOpError("has '") << markName << "', which is no #mgpu.mark";
  for (const MarkPlace &place : markPlaces)
    if (hasMark(op, place.mark) && !place.takes(op))
      return op->emitOpError("has the mark '")
             << stringifyMark(place.mark) << "', which is for " << place.named;
  return success();
}

LogicalResult MgpuDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  static const std::vector<std::string> ofUsers = {"mgpu.name"};
  const StringRef name = attribute.getName();
  if (isa<ModuleOp>(op) && name == "mgpu.device_config")
    return emitError(op->getLoc())
           << "the devices are not an attribute of the module: write the "
              "operation `mgpu.device_config @config "
              "#mgpu.device_config<numDevices = N>` in it";
  if (name == productName)
    return verifyProduct(op, attribute.getValue());
  if (name == attentionName)
    return verifyAttention(op, attribute.getValue());
  if (name == markName)
    return verifyMark(op, attribute.getValue());
  if (isFactOfPasses(name))
    return success();
  return checkName(name, "'" + op->getName().getStringRef().str() + "' op",
                   ofUsers, op->getLoc());
}

LogicalResult MgpuDialect::verifyRegionArgAttribute(Operation *op,
                                                    unsigned region,
                                                    unsigned argument,
                                                    NamedAttribute attribute) {
  static const std::vector<std::string> known = {"mgpu.name", "mgpu.role"};
  Region &body = op->getRegion(region);
  return checkName(attribute.getName(), "an argument", known,
                   body.empty() ? op->getLoc()
                                : body.getArgument(argument).getLoc());
}

LogicalResult
MgpuDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                         NamedAttribute attribute) {
  static const std::vector<std::string> known = {"mgpu.name", "mgpu.expect",
                                                 "mgpu.expected"};
  return checkName(attribute.getName(), "a result", known, op->getLoc());
}
