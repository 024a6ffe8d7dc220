// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Corpus.h"
#include "CorpusMaker.h"
#include "KernelRunner.h"

#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <span>

namespace mgpu::kernels {

namespace corpus {

namespace {

/// A launch, and how one of its threads finds its element.
struct Shape {
  const char *name;
  Dim3 block, grid;
  const char *extents, *layout; ///< of each memref
  size_t elements;              ///< of its memory
  const char *indices;
  const char *before, *after;
};

const Shape one{"one", {1}, {1}, "1", "", 1, "%i", "%i = gpu.global_id x\n",
                ""},
    fitting{"fitting", {32}, {3}, "96", "", 96, "%i", "%i = gpu.global_id x\n",
            ""},
    ragged{"ragged",
           {128},
           {8},
           "1000",
           "",
           1000,
           "%i",
           R"(%i = gpu.global_id x
%n = arith.constant 1000 : index
%in = arith.cmpi slt, %i, %n : index
scf.if %in {
)",
           "}\n"},
    plane{"plane",
          {8, 4},
          {5, 3},
          "12x40",
          ", strided<[48, 1], offset: 3>",
          12 * 48 + 3,
          "%j, %i",
          "%i = gpu.global_id x\n%j = gpu.global_id y\n",
          ""},
    box{"box",
        {4, 4, 2},
        {3, 2, 2},
        "4x8x12",
        "",
        4 * 8 * 12,
        "%k, %j, %i",
        "%i = gpu.global_id x\n%j = gpu.global_id y\n%k = gpu.global_id z\n",
        ""};

/// `body` with names of its own, but for operands and indices.
std::string renamed(const std::string &body, const std::string &suffix) {
  std::string out;
  for (size_t at = 0; at < body.size();) {
    out += body[at];
    if (body[at++] != '%')
      continue;
    std::string name;
    while (at < body.size() && (std::isalnum(body[at]) || body[at] == '_'))
      name += body[at++];
    const bool isShared = name == "a" || name == "b" || name == "c";
    out += name + (isShared ? "" : suffix);
  }
  return out;
}

/// Values for operand k that leave no result of the family undefined.
CorpusBuffer::Values valuesOf(std::string_view family, size_t k) {
  for (std::string_view prefix : {"vector_", "index_"})
    if (family.starts_with(prefix) && family != "vector_reduce")
      family.remove_prefix(prefix.size());
  if (family == "power")
    return CorpusBuffer::Power;
  if (family == "fpowi")
    return k == 0 ? CorpusBuffer::Divisor : CorpusBuffer::Power;
  if (family == "convert")
    return CorpusBuffer::Rough;
  if (k == 0)
    return CorpusBuffer::Any;
  return family == "shift"                         ? CorpusBuffer::Positive
         : family == "divide" || family == "float" ? CorpusBuffer::Divisor
                                                   : CorpusBuffer::Any;
}

/// All operations have the operands of the first.
CorpusKernel kernelOf(const std::string &name,
                      std::span<const Operation> operations,
                      const Shape &shape) {
  auto memref = [&](const std::string &type) {
    return fmt::format("memref<{}x{}{}>", shape.extents, type, shape.layout);
  };
  const Types &operands = operations.front().operands;
  std::string arguments, body = shape.before, functions;
  std::vector<CorpusBuffer> buffers;
  for (size_t k = 0; k < operands.size(); ++k) {
    char letter = char('a' + k);
    const std::string type = memref(operands[k]);
    arguments += fmt::format("%m{}: {}, ", letter, type);
    body += fmt::format("%{0} = memref.load %m{0}[{1}] : {2}\n", letter,
                        shape.indices, type);
    buffers.push_back(
        {operands[k], shape.elements, valuesOf(operations.front().family, k)});
  }
  for (size_t k = 0; k < operations.size(); ++k) {
    const std::string number = std::to_string(k),
                      type = memref(operations[k].result);
    arguments += fmt::format("{}%o{}: {}", k ? ", " : "", number, type);
    std::string one = renamed(
        operations[k].body + "memref.store %r, $out[$i] : $o\n", "_" + number);
    for (const auto &[mark, text] : {std::pair("$out", "%o" + number),
                                     {"$i", std::string(shape.indices)},
                                     {"$o", type}})
      for (size_t at; (at = one.find(mark)) != std::string::npos;)
        one.replace(at, std::strlen(mark), text);
    body += one;
    functions += operations[k].functions;
    buffers.push_back({operations[k].result, shape.elements});
  }
  return {name + "_" + shape.name,
          module(arguments, body + shape.after, functions), shape.block,
          shape.grid, std::move(buffers)};
}

} // namespace

} // namespace corpus

std::vector<CorpusKernel> corpusKernels() {
  using namespace corpus;
  Maker maker;
  for (const std::string &type : integers)
    maker.makeIntegers(type);
  maker.makeIntegers("index");
  maker.makeIndices();
  maker.makeBits();
  for (const std::string &type : floats)
    maker.makeFloats(type);
  maker.makeConversions();
  maker.makeAtomics();
  maker.makeVectors();
  for (const Types &types : {integers, floats, storage, Types{"index", "i1"}})
    for (const std::string &type : types)
      maker.makeStructure(type);
  std::vector<CorpusKernel> kernels;
  std::map<std::pair<std::string, Types>, std::vector<Operation>> groups;
  for (const Operation &op : maker.operations)
    groups[{op.family, op.operands}].push_back(op);
  constexpr size_t most = 8; // operations of a kernel
  for (const auto &[key, operations] : groups)
    for (size_t first = 0; first < operations.size(); first += most) {
      std::string name = key.first;
      for (const std::string &type : key.second)
        name += "_" + type;
      if (first > 0)
        name += "_" + std::to_string(first);
      const std::span<const Operation> some(
          operations.data() + first, std::min(most, operations.size() - first));
      for (const Shape *shape : {&one, &fitting, &ragged})
        kernels.push_back(kernelOf(name, some, *shape));
    }
  for (const Types &types : {integers, floats, storage, Types{"index", "i1"}})
    for (const std::string &type : types) {
      Operation copy{
          "copy_" + type,
          {type, type},
          type,
          fmt::format("%r = arith.select %first, %a, %b : {}\n", type)};
      copy.body = "%t0 = gpu.thread_id x\n%c2 = arith.constant 2 : index\n"
                  "%first = arith.cmpi slt, %t0, %c2 : index\n" +
                  copy.body;
      for (const Shape *shape : {&one, &fitting, &ragged, &plane, &box})
        kernels.push_back(kernelOf("copy_" + type, {&copy, 1}, *shape));
    }
  for (CorpusKernel &each : together())
    kernels.push_back(std::move(each));
  return kernels;
}

} // namespace mgpu::kernels
