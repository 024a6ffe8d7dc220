// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelHash.h"

#include "dialect/mgpu/MgpuDialect.h"
#include "dialect/mpmd/MpmdDialect.h"
#include "facts/KernelProduct.h"
#include "support/Sha256.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/Support/raw_ostream.h"

namespace mgpu::planner {

using namespace mlir;

void setDynamicSharedBytes(ModuleOp module, int64_t bytes) {
  if (bytes > 0)
    module.lookupSymbol("entry")->setAttr(
        "mgpu.dynamic_shared_bytes",
        Builder(module.getContext()).getI64IntegerAttr(bytes));
}

llvm::SmallVector<int64_t> productPositions(const KernelParts &kernel) {
  llvm::SmallVector<int64_t> positions;
  ir::LaunchOp launch = kernel.launch;
  if (!ir::productOf(launch) && !ir::attentionOf(launch) &&
      !ir::sparseProductOf(launch))
    return positions;
  for (Value arg : launch.getArgs()) {
    int64_t position = 0;
    for (const Capture &capture : kernel.captures) {
      if (capture.value == arg)
        break;
      position += capture.type != Type();
    }
    positions.push_back(position);
  }
  return positions;
}

/// Whether it belongs to host code: commands, launches, memory that the module
/// has.
static bool isOfHost(Operation *op) {
  return isa_and_nonnull<ir::MgpuDialect>(op->getDialect()) ||
         isa<memref::GetGlobalOp, gpu::LaunchOp, gpu::LaunchFuncOp>(op);
}

static LogicalResult checkCallees(Operation *root, ModuleOp module,
                                  llvm::DenseSet<Operation *> &checked) {
  auto addressed = root->walk([](func::ConstantOp op) {
    op.emitOpError("in a kernel is not supported: call the function");
    return WalkResult::interrupt();
  });
  if (addressed.wasInterrupted())
    return failure();
  auto walked = root->walk([&](func::CallOp call) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal()) {
      call.emitOpError("calls '")
          << call.getCallee() << "', which has no body in this module";
      return WalkResult::interrupt();
    }
    if (!checked.insert(callee).second)
      return WalkResult::advance();
    auto ofHost = callee.walk([&](Operation *op) {
      if (!isOfHost(op))
        return WalkResult::advance();
      op->emitOpError("cannot be used inside a kernel, which calls '")
          << callee.getName() << "'";
      return WalkResult::interrupt();
    });
    return WalkResult(failure(ofHost.wasInterrupted() ||
                              failed(checkCallees(callee, module, checked))));
  });
  return failure(walked.wasInterrupted());
}

LogicalResult checkCallees(Operation *root, ModuleOp module) {
  llvm::DenseSet<Operation *> checked;
  return checkCallees(root, module, checked);
}

LogicalResult checkKernelBody(ir::LaunchOp launch) {
  Region &body = launch.getBody();
  for (BlockArgument workgroup : body.front().getArguments())
    if (!isa<MemRefType>(workgroup.getType()))
      return launch.emitOpError("block argument of type ")
             << workgroup.getType() << " in a kernel is not supported";
  bool calls = false;
  auto walked = body.walk([&](Operation *op) {
    calls |= isa<func::CallOp, func::ConstantOp>(op);
    bool ends = isa<ir::TerminatorOp>(op) && op->getParentRegion() == &body;
    if (isOfHost(op) && !ends) {
      op->emitOpError("cannot be used inside a kernel");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return calls ? checkCallees(launch, launch->getParentOfType<ModuleOp>())
               : success();
}

void cloneCallees(Operation *root, ModuleOp from, ModuleOp into) {
  root->walk([&](func::CallOp call) {
    if (into.lookupSymbol(call.getCallee()))
      return;
    Operation *copy = from.lookupSymbol(call.getCallee())->clone();
    SymbolTable::setSymbolVisibility(copy, SymbolTable::Visibility::Private);
    into.push_back(copy);
    cloneCallees(copy, from, into);
  });
}

/// Leaves out of locations which work of a pipeline they belong to: one kernel
/// does it for all microbatches, and is read without that dialect.
static void dropWorks(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](FusedLoc fused) -> std::optional<Attribute> {
    if (!isa_and_nonnull<mpmd::WorkAttr>(fused.getMetadata()))
      return std::nullopt;
    ArrayRef<Location> all = fused.getLocations();
    return all.size() == 1 ? Attribute(LocationAttr(all.front()))
                           : Attribute(FusedLoc::get(fused.getContext(), all));
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/false,
                                        /*replaceLocs=*/true);
}

/// Says on a kernel what its launch computes: `positions` are those of the
/// launch's `args` among the arguments.
static void setForms(func::FuncOp entry, ir::LaunchOp launch,
                     llvm::ArrayRef<int64_t> positions) {
  if (auto product = facts::productOf(entry, ir::productOf(launch), positions))
    entry->setAttr(ir::productName, product);
  if (ir::AttentionAttr of = ir::attentionOf(launch))
    entry->setAttr(ir::attentionName,
                   ir::AttentionAttr::get(of.getContext(), of.getBatch(),
                                          of.getQueries(), of.getKeys(),
                                          of.getHead(), of.getValue(),
                                          of.getMaps(), positions));
  if (ir::ClusterAttr cluster = ir::clusterOf(launch))
    entry->setAttr(ir::clusterName, cluster);
  if (ir::SparseProductAttr of = ir::sparseProductOf(launch))
    entry->setAttr(
        ir::sparseName,
        ir::SparseProductAttr::get(of.getContext(), of.getKind(), of.getRows(),
                                   of.getColumns(), of.getEntries(),
                                   of.getBreadth(), of.getIsFirstTurned(),
                                   of.getIsSecondTurned(), positions));
}

OwningOpRef<ModuleOp> buildKernelModule(const KernelParts &kernel) {
  ir::LaunchOp launch = kernel.launch;
  Location location = launch.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  llvm::SmallVector<Type> argumentTypes;
  for (const Capture &capture : kernel.captures)
    if (capture.type)
      argumentTypes.push_back(capture.type);
  OpBuilder builder(module->getBodyRegion());
  auto entry =
      func::FuncOp::create(builder, location, "entry",
                           builder.getFunctionType(argumentTypes, TypeRange()));

  IRMapping mapping;
  launch.getBody().cloneInto(&entry.getBody(), mapping);
  Block &block = entry.getBody().front();
  builder.setInsertionPointToStart(&block);
  for (BlockArgument workgroup : block.getArguments())
    workgroup.replaceAllUsesWith(
        memref::AllocaOp::create(builder, location,
                                 cast<MemRefType>(workgroup.getType()))
            .getResult());
  block.eraseArguments(0, block.getNumArguments());
  llvm::SmallDenseMap<Value, Value> insideOf;
  for (const Capture &capture : kernel.captures) {
    Value inside;
    if (!capture.type) {
      inside = builder.clone(*capture.value.getDefiningOp())->getResult(0);
    } else {
      inside = block.addArgument(capture.type, capture.value.getLoc());
      Type wanted = capture.value.getType();
      if (!isa<MemRefType>(wanted) && isa<MemRefType>(capture.type))
        inside = memref::LoadOp::create(builder, location, inside);
      else if (capture.type != wanted)
        inside = memref::CastOp::create(builder, location, wanted, inside);
    }
    insideOf[capture.value] = inside;
  }
  entry.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (Value inside = insideOf.lookup(operand.get()))
        operand.set(inside);
  });
  for (ir::TerminatorOp terminator :
       llvm::to_vector(entry.getOps<ir::TerminatorOp>())) {
    builder.setInsertionPoint(terminator);
    func::ReturnOp::create(builder, location);
    terminator.erase();
  }
  cloneCallees(entry, launch->getParentOfType<ModuleOp>(), *module);
  setDynamicSharedBytes(*module, kernel.dynamicSharedBytes);
  setForms(entry, launch, productPositions(kernel));
  dropWorks(*module);
  return module;
}

std::string printKernel(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // Made of verified operations whose operands keep their types.
  OpPrintingFlags flags;
  flags.assumeVerified().useLocalScope().enableDebugInfo();
  // MLIR prints the cases of a switch without their sign and does not read
  // those back that then are too large.
  auto walked =
      module.walk([](cf::SwitchOp) { return WalkResult::interrupt(); });
  flags.printGenericOpForm(walked.wasInterrupted());
  module->print(stream, flags);
  text += '\n';
  return text;
}

// Seven bits a byte, low ones first: where a number ends shows.
void KernelHasher::word(uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    bytes.push_back(char(0x80 | (value & 0x7f)));
  bytes.push_back(char(value));
}

void KernelHasher::text(StringRef value) {
  word(value.size());
  bytes += value;
}

// Spelt where the kernel first has it, then by its number.
void KernelHasher::type(Type type) {
  const size_t known = numbers.size();
  const uint64_t number = numberOf(type.getAsOpaquePointer());
  word(number);
  if (number == known)
    spell(type);
}

void KernelHasher::spell(Type type) {
  auto [at, isNew] = spelt.try_emplace(type.getAsOpaquePointer());
  if (isNew) {
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    type.print(stream, *printing);
    at->second = saved.save(printed);
  }
  text(at->second);
}

// Numbers, of which programs have many, and what holds them, by their bits:
// printing one takes longer than to hash a small kernel.
void KernelHasher::attribute(Attribute attribute) {
  enum Kind : uint8_t { None, Dictionary, Integer, Float, String, Printed };
  auto bits = [&](const llvm::APInt &value) {
    for (unsigned k = 0; k < value.getNumWords(); ++k)
      word(value.getRawData()[k]);
  };
  if (!attribute) {
    word(None);
  } else if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    word(Dictionary);
    word(dictionary.size());
    for (NamedAttribute named : dictionary) { // sorted by name
      text(named.getName());
      this->attribute(named.getValue());
    }
  } else if (auto integer = dyn_cast<IntegerAttr>(attribute)) {
    word(Integer);
    spell(integer.getType());
    bits(integer.getValue());
  } else if (auto number = dyn_cast<FloatAttr>(attribute)) {
    word(Float);
    spell(number.getType());
    if (floats == Floats::Hashed)
      bits(number.getValue().bitcastToAPInt());
  } else if (auto string = dyn_cast<StringAttr>(attribute)) {
    word(String);
    spell(string.getType());
    text(string);
  } else {
    auto [at, isNew] = spelt.try_emplace(attribute.getAsOpaquePointer());
    if (isNew) {
      std::string printed;
      llvm::raw_string_ostream stream(printed);
      attribute.print(stream, *printing);
      at->second = saved.save(printed);
    }
    word(Printed);
    text(at->second);
  }
}

void KernelHasher::header(Operation *op) {
  // No two need be alike, and it has nothing but a value.
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    text(op->getName().getStringRef());
    attribute(constant.getValue());
    attribute(op->getDiscardableAttrDictionary());
    return;
  }
  OperationName name = op->getName();
  DictionaryAttr discardable = op->getDiscardableAttrDictionary();
  size_t key = llvm::hash_combine(name.getAsOpaquePointer(),
                                  discardable.getAsOpaquePointer(),
                                  op->hashProperties());
  auto [first, last] = headers.equal_range(key);
  for (; first != last; ++first) {
    Operation *known = first->second.op;
    if (known->getName() == name &&
        known->getDiscardableAttrDictionary() == discardable &&
        name.compareOpProperties(known->getPropertiesStorage(),
                                 op->getPropertiesStorage())) {
      bytes += first->second.bytes;
      return;
    }
  }
  size_t start = bytes.size();
  text(name.getStringRef());
  attribute(op->getPropertiesAsAttribute());
  attribute(discardable);
  headers.emplace(key, Header{op, saved.save(bytes.str().drop_front(start))});
}

uint64_t KernelHasher::numberOf(const void *pointer) {
  return numbers.try_emplace(pointer, numbers.size()).first->second;
}

void KernelHasher::define(Value value) {
  word(numberOf(value.getAsOpaquePointer()));
  type(value.getType());
}

void KernelHasher::region(Region &region) {
  word(region.getBlocks().size());
  for (Block &block : region) {
    word(numberOf(&block));
    word(block.getNumArguments());
    for (BlockArgument argument : block.getArguments())
      define(argument);
    for (Operation &op : block)
      operation(&op);
    word(0); // no operation has an empty name: the block ends
  }
}

void KernelHasher::operation(Operation *op) {
  header(op);
  word(op->getNumOperands());
  for (Value operand : op->getOperands())
    word(numberOf(operand.getAsOpaquePointer()));
  word(op->getNumResults());
  for (Value result : op->getResults())
    define(result);
  word(op->getNumSuccessors());
  for (Block *successor : op->getSuccessors())
    word(numberOf(successor));
  word(op->getNumRegions());
  for (Region &inner : op->getRegions())
    region(inner);
  if (auto call = dyn_cast<func::CallOp>(op)) {
    if (!symbols)
      symbols.emplace(module);
    if (Operation *callee = symbols->lookup(call.getCallee()))
      called.insert(callee);
  }
}

/// Functions found on the way are appended, and come in turn.
void KernelHasher::callees() {
  for (size_t k = 0; k < called.size(); ++k)
    operation(called[k]);
}

void KernelHasher::begin(Dim3 block) {
  if (!printing)
    printing.emplace(module.getContext(), OpPrintingFlags().useLocalScope());
  bytes.clear();
  numbers.clear();
  called.clear();
  text("mgpu kernel 1"); // another way to spell them: another number
  for (uint32_t size : {block.x, block.y, block.z})
    word(size);
}

std::string KernelHasher::finish() {
  callees();
  return Sha256().add(std::string_view(bytes.data(), bytes.size())).hex();
}

std::string KernelHasher::hash(const KernelParts &kernel) {
  begin(kernel.block);
  word(uint64_t(kernel.dynamicSharedBytes));
  ir::LaunchOp launch = kernel.launch;
  for (StringRef name :
       {ir::productName, ir::attentionName, ir::sparseName, ir::clusterName})
    if (Attribute of = launch->getAttr(name)) {
      text(name);
      attribute(of);
    }
  llvm::SmallVector<int64_t> positions = productPositions(kernel);
  word(positions.size());
  for (int64_t position : positions)
    word(uint64_t(position));
  word(kernel.captures.size());
  for (const Capture &capture : kernel.captures) {
    define(capture.value);
    word(capture.type != Type());
    if (capture.type)
      type(capture.type);
    else // a constant
      header(capture.value.getDefiningOp());
  }
  region(launch.getBody());
  return finish();
}

std::string KernelHasher::hash(ModuleOp kernel, Dim3 block) {
  begin(block);
  region(kernel.getBodyRegion());
  return finish();
}

} // namespace mgpu::planner
