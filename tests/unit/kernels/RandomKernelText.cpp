// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomKernelText.h"

#include <algorithm>

namespace mgpu::kernels::random {

static std::string numberOf(uint64_t value) { return std::to_string(value); }

std::string Printer::named(const std::vector<int> &values, size_t first) const {
  std::string names;
  for (size_t k = first; k < values.size(); ++k)
    names += (k > first ? ", " : "") + name(values[k]);
  return names;
}

std::string Printer::typed(const std::vector<int> &values, size_t first) const {
  std::string types;
  for (size_t k = first; k < values.size(); ++k)
    types += (k > first ? ", " : "") + type(values[k]);
  return types;
}

/// How arrays are called, and what their memory is.
static std::string arrayName(uint64_t array, const Array &which,
                             const std::string &through) {
  return "%array" + numberOf(array) +
         (which.place >= Array::Rows ? through : "");
}
static std::string arrayType(const Array &array, const Kernel &kernel) {
  const uint64_t each = array.place == Array::Private ? 1
                        : array.place == Array::Workgroup
                            ? kernel.block.volume()
                            : kernel.threads();
  return "memref<" + numberOf(array.size * each) + "x" + typeName(array.kind) +
         (array.place == Array::Workgroup ? ", #gpu.address_space<workgroup>>"
                                          : ">");
}

/// "%array[%place] : type" of the thread's element `at`.
std::string Printer::elementOf(const Op &op, const std::string &at) {
  const Array &array = kernel.arrays[op.bits];
  const std::string u = fresh(), size = fresh();
  text +=
      size + " = arith.constant " +
      numberOf(array.place == Array::Columns ? kernel.threads() : array.size) +
      " : index\n";
  if (array.place == Array::Columns)
    text += u + "r = arith.muli " + at + ", " + size + " : index\n" + u +
            " = arith.addi " + u + "r, %at : index\n";
  else if (array.place != Array::Private)
    text += u + "r = arith.muli " +
            (array.place == Array::Rows ? "%at, " : "%t, ") + size +
            " : index\n" + u + " = arith.addi " + u + "r, " + at + " : index\n";
  return arrayName(op.bits, array, op.name) + "[" +
         (array.place == Array::Private ? at : u) +
         "] : " + arrayType(array, kernel);
}

void Printer::printArray(const Op &op) {
  const Array &array = kernel.arrays[op.bits];
  const std::string type = arrayType(array, kernel);
  if (array.place < Array::Rows)
    text +=
        arrayName(op.bits, array, "") + " = memref.alloca() : " + type + "\n";
  else
    for (const char *through : {"left", "right"}) {
      const std::string shift = fresh();
      text += shift + " = arith.constant " +
              numberOf(array.slot * bytesOfSlot(kernel)) + " : index\n" +
              arrayName(op.bits, array, through) + " = memref.view %" +
              through + "[" + shift + "][] : !slots to " + type + "\n";
    }
  for (uint32_t k = 0; k < array.size; ++k) {
    const std::string at = fresh();
    text += at + " = arith.constant " + numberOf(k) + " : index\n";
    const std::string element = elementOf(op, at);
    text += "memref.store " + name(op.operands[0]) + ", " + element + "\n";
  }
}

void Printer::printAccess(const Op &op) {
  std::string at = name(op.operands[0]);
  if (op.code == Op::Put || op.code == Op::Take) {
    const std::string size = fresh(), rest = fresh();
    text += size + " = arith.constant " +
            numberOf(kernel.arrays[op.bits].size) + " : index\n" + rest +
            " = arith.remui " + at + ", " + size + " : index\n";
    at = rest;
  }
  const std::string element = elementOf(op, at);
  text += op.results.empty() ? "memref.store " + name(op.operands[1]) + ", "
                             : name(op.results[0]) + " = memref.load ";
  text += element + "\n";
}

uint64_t bytesOfSlot(const Kernel &kernel) {
  return kernel.threads() * maxArraySize * sizeof(uint64_t);
}

std::string textOf(const std::vector<Kernel> &kernels) {
  const Kernel &one = kernels[0];
  std::string text =
      "!all = memref<" + numberOf(one.threads()) + "xi32>\n!more = memref<" +
      numberOf(one.threads() + 1) + "xi32>\n!slots = memref<" +
      numberOf(bytesOfSlot(one) * numSlots) + "xi8>\n!tile = memref<" +
      numberOf(one.block.volume()) +
      "xi32, #gpu.address_space<workgroup>>\n"
      "func.func @entry(%in: !all, %out: !more, %left: !slots, %right: !slots, "
      "%which: index) {\n" +
      (std::any_of(kernels.begin(), kernels.end(),
                   [](const Kernel &each) { return each.exchanges(); })
           ? "%tile = memref.alloca() : !tile\n"
           : "") +
      "%zero = arith.constant 0 : i32\n%lanes = arith.constant 32 : i32\n";
  std::pair<const char *, uint64_t> constants[] = {
      {"threads", one.block.volume()},
      {"total", one.threads()},
      {"nx", one.block.x},
      {"ny", one.block.y}};
  for (auto [name, value] : constants)
    text += std::string("%") + name + " = arith.constant " + numberOf(value) +
            " : index\n";
  text += "%tx = gpu.thread_id x\n%ty = gpu.thread_id y\n"
          "%tz = gpu.thread_id z\n%b = gpu.block_id x\n"
          "%tzn = arith.muli %tz, %ny : index\n"
          "%ln = arith.addi %tzn, %ty : index\n"
          "%lnn = arith.muli %ln, %nx : index\n"
          "%t = arith.addi %lnn, %tx : index\n"
          "%bn = arith.muli %b, %threads : index\n"
          "%at = arith.addi %bn, %t : index\n";
  auto whole = [](const Kernel &kernel) {
    Printer printer(kernel);
    printer.print(kernel.body);
    return printer.text + "memref.store " + Printer::name(kernel.result()) +
           ", %out[%at] : !more\n";
  };
  if (kernels.size() == 1)
    return text + whole(one) + "return\n}\n";
  text += "scf.index_switch %which\n";
  for (size_t k = 0; k < kernels.size(); ++k)
    text +=
        "case " + numberOf(k) + " {\n" + whole(kernels[k]) + "scf.yield\n}\n";
  return text + "default {\n}\nreturn\n}\n";
}

} // namespace mgpu::kernels::random
