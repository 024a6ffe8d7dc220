// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelHash.h"

#include "dialect/mgpu/MgpuDialect.h"
#include "support/Sha256.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/Support/raw_ostream.h"

namespace mgpu::planner {

using namespace mlir;

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
  for (StringRef name : {ir::productName, ir::sparseName, ir::clusterName})
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
