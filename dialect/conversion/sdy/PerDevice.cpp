// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/SpmdPhases.h"

#include "dialect/conversion/sdy/TensorParts.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/stablehlo/Companions.h"

#include "llvm/ADT/StringExtras.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// The argument that gives its memory to a result, and others that are donated.
constexpr StringLiteral aliasName = "tf.aliasing_output",
                        donorName = "jax.buffer_donor";

class PerDevice {
public:
  PerDevice(func::FuncOp entry, int64_t replicas, int64_t partitions)
      : entry(entry), replicas(replicas), partitions(partitions) {}
  FailureOr<std::string> run();

private:
  LogicalResult describe();
  FailureOr<RankedTensorType> part(Type type, DictionaryAttr attributes);
  void dropAttributes(bool shardings);
  void wrap();

  func::FuncOp entry;
  int64_t replicas, partitions;
  SmallVector<Type> taken, given; ///< by one device
  std::string lines;
};

std::string lineOf(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << type.getElementType() << ' ';
  if (type.getRank() == 0)
    out << '-';
  llvm::interleave(type.getShape(), out, "x");
  return text;
}

/// The part of a value of the function that one device has.
FailureOr<RankedTensorType> PerDevice::part(Type type,
                                            DictionaryAttr attributes) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return ir::emitUnsupported(entry)
           << "takes or gives " << type
           << ", and a call of it has tensors of known shapes alone";
  if (replicas * partitions == 1)
    return tensor;
  FailureOr<Cutting> cut =
      cuttingOf(entry, attributes, tensor, replicas * partitions);
  if (failed(cut))
    return failure();
  std::optional<SmallVector<int64_t>> shape =
      cut->parts.shapeOf(tensor.getShape());
  if (!shape) {
    entry.emitError() << "has a sharding that cuts " << tensor
                      << " into parts of different sizes";
    return failure();
  }
  return tensor.clone(*shape);
}

LogicalResult PerDevice::describe() {
  llvm::raw_string_ostream out(lines);
  auto module = entry->getParentOfType<ModuleOp>();
  std::string name = module.getSymName().value_or("main").str();
  llvm::for_each(name, [](char &c) {
    if (!llvm::isPrint(c) || c == ' ')
      c = '_';
  });
  out << "processes " << replicas << ' ' << partitions << "\nmodule " << name
      << '\n';
  for (auto [k, type] : llvm::enumerate(entry.getArgumentTypes())) {
    FailureOr<RankedTensorType> own = part(type, entry.getArgAttrDict(k));
    if (failed(own))
      return failure();
    taken.push_back(*own);
    out << "argument " << lineOf(*own) << ' ';
    if (auto result = entry.getArgAttrOfType<IntegerAttr>(k, aliasName))
      out << result.getInt() << '\n';
    else
      out << "-\n";
  }
  for (auto [k, type] : llvm::enumerate(entry.getResultTypes())) {
    FailureOr<RankedTensorType> own = part(type, entry.getResultAttrDict(k));
    if (failed(own))
      return failure();
    given.push_back(*own);
    out << "result " << lineOf(*own) << '\n';
  }
  return success();
}

void PerDevice::dropAttributes(bool shardings) {
  for (unsigned k = 0; k < entry.getNumArguments(); ++k) {
    entry.removeArgAttr(k, aliasName);
    entry.removeArgAttr(k, donorName);
    if (shardings) {
      entry.removeArgAttr(k, sdy::shardingName);
      entry.removeArgAttr(k, "mhlo.sharding");
    }
  }
  for (unsigned k = 0; shardings && k < entry.getNumResults(); ++k) {
    entry.removeResultAttr(
        k, StringAttr::get(entry.getContext(), sdy::shardingName));
    entry.removeResultAttr(
        k, StringAttr::get(entry.getContext(), "mhlo.sharding"));
  }
}

/// Each device runs the function, for arguments of its own.
void PerDevice::wrap() {
  MLIRContext *context = entry.getContext();
  context->getOrLoadDialect<interpreter::InterpreterDialect>();
  const std::string name = entry.getName().str();
  auto module = entry->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  FailureOr<StringAttr> other = symbols.renameToUnique(entry, {&symbols});
  (void)other; // a table of one module has other names
  SymbolTable::setSymbolVisibility(entry, SymbolTable::Visibility::Private);
  SmallVector<Type> inputs, outputs;
  for (int64_t process = 0; process < replicas * partitions; ++process) {
    llvm::append_range(inputs, taken);
    llvm::append_range(outputs, given);
  }
  OpBuilder b(entry);
  auto function = func::FuncOp::create(b, entry.getLoc(), name,
                                       b.getFunctionType(inputs, outputs));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  auto symbol = FlatSymbolRefAttr::get(entry.getSymNameAttr());
  SmallVector<Attribute> row(partitions, symbol);
  SmallVector<Attribute> rows(replicas, b.getArrayAttr(row));
  auto run = interpreter::RunParallelOp::create(
      b, entry.getLoc(), outputs, body->getArguments(), ArrayAttr(),
      b.getArrayAttr(rows));
  func::ReturnOp::create(b, entry.getLoc(), run.getResults());
}

FailureOr<std::string> PerDevice::run() {
  if (replicas > 1 && partitions > 1 && isOverWholeTensors(entry))
    return ir::emitUnsupported(entry)
           << "has shardings and several replicas; this version takes one of "
              "both";
  if (failed(describe()))
    return failure();
  const bool isAlone = replicas * partitions == 1;
  dropAttributes(isAlone);
  if (!isAlone)
    wrap();
  return lines;
}

} // namespace

FailureOr<std::string> callPerDevice(func::FuncOp entry, int64_t replicas,
                                     int64_t partitions) {
  return PerDevice(entry, replicas, partitions).run();
}

} // namespace mgpu::conversion
