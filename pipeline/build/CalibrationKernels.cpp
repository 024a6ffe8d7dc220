// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/CalibrationKernels.h"

#include "pipeline/build/Kernels.h"
#include "pipeline/program/Load.h"
#include "planner/cost/HostRates.h"
#include "support/FileIO.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace mgpu::pipeline {

// The kernels that `calibrate` measures a host with, beside those of
// calibrate.mlir: starts, operations, special functions, reductions, accesses
// by stride and cache level, and products of many shapes.

namespace {

constexpr const char *maps = R"(#v = affine_map<(i) -> (i)>
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
)";

using Sizes = std::vector<int64_t>;

std::string tensor(const Sizes &sizes, std::string_view type = "f32") {
  return fmt::format("tensor<{}x{}>", fmt::join(sizes, "x"), type);
}

/// Collects operations, and the arguments that they take.
class Writer {
public:
  /// Lines of `body` compute %r of %a and %b, elements of two arrays.
  void elementwise(int64_t count, std::string_view body,
                   std::string_view type = "f32") {
    const std::string t = tensor({count}, type);
    const std::string x = argument("x", t), y = argument("y", t);
    result(t,
           fmt::format("linalg.generic {{indexing_maps = [#v, #v, #v], "
                       "iterator_types = [\"parallel\"]}} ins({}, {} : {}, {}) "
                       "outs({} : {}) {{\n  ^bb0(%a: {}, %b: {}, %z: {}):\n{}"
                       "    linalg.yield %r : {}\n  }}",
                       x, y, t, t, empty(t), t, type, type, type, body, type));
  }
  void function(std::string_view name, std::string_view type = "f32",
                std::string_view operands = "%a") {
    elementwise(
        4096, fmt::format("    %r = {} {} : {}\n", name, operands, type), type);
  }
  /// Sums along the last axis, or the first.
  void sum(int64_t rows, int64_t columns, bool ofRows,
           std::string_view operation = "arith.addf") {
    const std::string t = tensor({rows, columns}),
                      out = tensor({ofRows ? rows : columns}),
                      x = argument("x", t);
    result(out,
           fmt::format("linalg.generic {{indexing_maps = [#ij, #{}], "
                       "iterator_types = [{}]}} ins({} : {}) outs({} : {}) {{\n"
                       "  ^bb0(%a: f32, %z: f32):\n    %r = {} %z, %a : f32\n"
                       "    linalg.yield %r : f32\n  }}",
                       ofRows ? "i" : "j",
                       ofRows ? R"("parallel", "reduction")"
                              : R"("reduction", "parallel")",
                       x, t, argument("z", out), out, operation));
  }
  void transpose(int64_t edge) {
    const std::string t = tensor({edge, edge}), x = argument("x", t);
    result(t,
           fmt::format("linalg.transpose ins({} : {}) outs({} : {}) "
                       "permutation = [1, 0]",
                       x, t, empty(t), t),
           false);
  }
  void gather(int64_t count) {
    const std::string t = tensor({count}), n = tensor({count}, "i32"),
                      x = argument("x", t), at = argument("n", n);
    result(t, fmt::format(
                  "linalg.generic {{indexing_maps = [#v, #v], iterator_types = "
                  "[\"parallel\"]}} ins({} : {}) outs({} : {}) {{\n"
                  "  ^bb0(%a: i32, %z: f32):\n"
                  "    %k = arith.index_cast %a : i32 to index\n"
                  "    %r = tensor.extract {}[%k] : {}\n"
                  "    linalg.yield %r : f32\n  }}",
                  at, n, empty(t), t, x, t));
  }
  void product(int64_t m, int64_t n, int64_t k, std::string_view type = "f32",
               bool isTurned = false) {
    const std::string a = tensor({m, k}, type),
                      b = isTurned ? tensor({n, k}, type)
                                   : tensor({k, n}, type),
                      c = tensor({m, n}, type), x = argument("p", a),
                      y = argument("q", b);
    result(c, fmt::format("linalg.matmul {}ins({}, {} : {}, {}) outs({} : {})",
                          isTurned ? "indexing_maps = [#mk, #nk, #mn] " : "", x,
                          y, a, b, argument("c", c), c));
  }
  /// c - a b, a sum that is no product of matrices.
  void difference(int64_t m, int64_t n, int64_t k, bool isTurned = false) {
    const std::string a = tensor({m, k}),
                      b = isTurned ? tensor({n, k}) : tensor({k, n}),
                      c = tensor({m, n});
    result(c, fmt::format(
                  "linalg.generic {{indexing_maps = [#mk, #{}, #mn], "
                  "iterator_types = [\"parallel\", \"parallel\", "
                  "\"reduction\"]}} ins({}, {} : {}, {}) outs({} : {}) {{\n"
                  "  ^bb0(%a: f32, %b: f32, %z: f32):\n"
                  "    %s = arith.mulf %a, %b : f32\n"
                  "    %r = arith.subf %z, %s : f32\n"
                  "    linalg.yield %r : f32\n  }}",
                  isTurned ? "nk" : "kn", argument("p", a), argument("q", b), a,
                  b, argument("c", c), c));
  }
  std::string text() const {
    return fmt::format("{}func.func @main({}) -> ({}) {{\n{}  return {} : {}\n"
                       "}}\n",
                       maps, fmt::join(arguments, ", "), fmt::join(types, ", "),
                       body, fmt::join(results, ", "), fmt::join(types, ", "));
  }

private:
  static std::string named(std::string_view name, std::string_view type) {
    std::string out = fmt::format("%{}_{}", name, type.substr(7));
    out.pop_back();
    return out;
  }
  std::string argument(std::string_view name, const std::string &type) {
    std::string out = named(name, type);
    arguments.insert(fmt::format("{}: {}", out, type));
    return out;
  }
  std::string empty(const std::string &type) {
    std::string out = named("e", type);
    if (empties.insert(out).second)
      body.insert(0, fmt::format("  {} = tensor.empty() : {}\n", out, type));
    return out;
  }
  void result(const std::string &type, std::string_view operation,
              bool saysType = true) {
    results.push_back(fmt::format("%r{}", results.size()));
    types.push_back(type);
    body += fmt::format("  {} = {}{}{}\n", results.back(), operation,
                        saysType ? " -> " : "", saysType ? type : "");
  }

  std::set<std::string> arguments, empties;
  std::vector<std::string> results, types;
  std::string body;
};

void writeElementwise(Writer &to) {
  constexpr const char *scaled = "    %s = arith.mulf %a, %b : f32\n"
                                 "    %r = arith.addf %s, %b : f32\n";
  for (int64_t count : {8, 256, 4096, 1 << 18, 1 << 20, 1 << 21, 1 << 23})
    to.elementwise(count, scaled);
  std::string chain = "    %s0 = arith.mulf %a, %b : f32\n";
  for (int k = 0; k < 8; ++k)
    chain += fmt::format("    %t{0} = arith.addf %s{0}, %b : f32\n"
                         "    %s{1} = arith.mulf %t{0}, %a : f32\n",
                         k, k + 1);
  for (int64_t count : {1024, 4096, 8192})
    to.elementwise(count, chain + "    %r = arith.subf %s8, %b : f32\n");
  for (const char *name :
       {"math.exp", "math.log", "math.tanh", "math.erf", "math.sin", "math.cos",
        "math.sqrt", "math.rsqrt", "math.log1p", "math.expm1", "math.atan"})
    to.function(name);
  to.function("math.powf", "f32", "%a, %b");
  to.function("arith.divf", "f32", "%a, %b");
  to.function("math.exp", "f64");
  // All memory is zero.
  to.elementwise(4096,
                 "    %one = arith.constant 1 : i32\n"
                 "    %d = arith.ori %b, %one : i32\n"
                 "    %r = arith.remsi %a, %d : i32\n",
                 "i32");
}

} // namespace

/// A function over tensors, each operation of which is a kernel.
static std::string hostMicrokernels() {
  Writer out;
  writeElementwise(out);
  for (auto [rows, columns] :
       {std::pair(16, 64), {32, 128}, {64, 32}, {64, 256}, {16, 1024}})
    out.sum(rows, columns, true);
  for (auto [m, n, k] : {std::tuple(16, 32, 32),
                         {32, 24, 48},
                         {64, 64, 64},
                         {64, 10, 64},
                         {16, 7, 32}})
    out.difference(m, n, k);
  for (auto [m, n, k] : {std::tuple(16, 32, 16), {32, 64, 64}})
    out.difference(m, n, k, true);
  out.sum(64, 256, true, "arith.maximumf");
  out.sum(64, 256, false);
  out.sum(512, 32, false);
  for (int64_t edge : {32, 128, 1024, 4096})
    out.transpose(edge);
  for (int64_t count : {1 << 13, 1 << 19, 1 << 24})
    out.gather(count);
  for (auto [m, n, k] : {std::tuple(16, 16, 16),
                         {64, 64, 64},
                         {32, 256, 32},
                         {8, 1024, 1024},
                         {1, 1024, 1024},
                         {1, 4096, 4096},
                         {1024, 1024, 1024}})
    out.product(m, n, k);
  for (auto [m, n, k] :
       {std::tuple(32, 32, 32), {8, 768, 768}, {8, 768, 3072}, {256, 256, 256}})
    out.product(m, n, k, "f32", true);
  out.product(64, 64, 64, "f64");
  out.product(256, 256, 256, "f64");
  return out.text();
}

namespace {

using planner::DagNode;
using planner::KernelCall;

constexpr std::string_view hostText =
#include "pipeline/Calibrate-host.inc"
    ;
constexpr std::string_view gpuText =
#include "pipeline/Calibrate-gpu.inc"
    ;

/// The work of calibrate.mlir's kernels, in its order: for each number of the
/// second four chains of 512 multiplications and additions; products of square
/// matrices.
constexpr double flopsOfNumber = 4 * 512 * 2;
struct Element {
  const char *type;
  uint64_t bytes;
};
constexpr Element products[] = {{"f32", 4}, {"bf16", 2}};

Result<LoadedProgram> loadText(LoadOptions loading, std::string_view text) {
  loading.racesAreErrors = true;
  // In memory, for the importer, which takes names.
  const Descriptor file(memfd_create("calibrate.mlir", MFD_CLOEXEC));
  if (!file.isOpen() ||
      writeFully(file.get(), std::as_bytes(std::span(text))) != 0)
    return fail(ErrorKind::Absent, "there is no memory for a file of the "
                                   "kernels to compile");
  loading.file = file.path();
  return loadProgram(loading);
}

/// A call has what it needs beside its arguments as one more
/// (planner/plan/Workspace.h).
bench::CalibrationKernel kernelOf(const planner::Dag &dag, const DagNode &node,
                                  const std::vector<std::byte> &object) {
  const auto &call = std::get<KernelCall>(node.work);
  bench::CalibrationKernel out;
  out.name = dag.kernels[call.kernel.value].name;
  out.object = object;
  out.grid = call.grid;
  out.flops = node.flops;
  out.bytes = double(node.bytesRead) + double(node.bytesWritten);
  for (const planner::KernelArgument &argument : call.arguments) {
    if (const auto *bits = std::get_if<uint64_t>(&argument.value)) {
      out.arguments.push_back({0, *bits});
      continue;
    }
    const planner::Buffer &buffer =
        dag.buffer(std::get<planner::BufferId>(argument.value));
    out.arguments.push_back({std::max<uint64_t>(buffer.sizeBytes, 1),
                             uint64_t(argument.offsetBytes)});
  }
  if (const uint64_t bytes = kernels::workspaceBytesOf(object); bytes > 0)
    out.arguments.push_back({bytes, 0});
  return out;
}

/// The kernels of the host, and what they do by their facts.
Result<void> addHostKernels(LoadOptions options, CalibrationKernels &out) {
  options.fuse = false;
  MGPU_TRY_ASSIGN(const LoadedProgram program,
                  loadText(options, hostMicrokernels()));
  MGPU_TRY_ASSIGN(const HostKernels kernels,
                  pipeline::hostKernels(program, ""));
  for (const DagNode &node : program.dag.nodes) {
    const auto *call = std::get_if<KernelCall>(&node.work);
    if (!call)
      continue;
    bench::CalibrationKernel kernel =
        kernelOf(program.dag, node, kernels.objects[call->kernel.value]);
    if (const auto product = planner::hostProduct(program.dag, node))
      out.matmuls.push_back({std::string(toString(product->factors)),
                             uint32_t(product->m), uint32_t(product->n),
                             uint32_t(product->k), std::move(kernel),
                             product->isTurned});
    else
      out.host.push_back(
          {std::move(kernel), planner::hostCounts(program.dag, node)});
  }
  return {};
}

} // namespace

uint64_t bytesOf(const bench::CalibrationKernel &kernel) {
  return kernel.arguments.empty() ? 0 : kernel.arguments.front().memoryBytes;
}

Result<CalibrationKernels> compileCalibration(const LoadOptions &options,
                                              const std::string &architecture) {
  MGPU_TRY_ASSIGN(
      LoadedProgram program,
      options.file.empty()
          ? loadText(options, architecture.empty() ? hostText : gpuText)
          : loadProgram(options));
  std::vector<std::vector<std::byte>> objects;
  if (architecture.empty()) {
    MGPU_TRY_ASSIGN(HostKernels kernels, pipeline::hostKernels(program, ""));
    objects = std::move(kernels.objects);
  } else {
    auto cache = openCubinCache(options.database);
    MGPU_TRY_ASSIGN(objects, cudaKernels(program, architecture, cache.get()));
  }
  std::vector<bench::CalibrationKernel> kernels;
  for (const DagNode &node : program.dag.nodes)
    if (const auto *call = std::get_if<KernelCall>(&node.work))
      kernels.push_back(
          kernelOf(program.dag, node, objects[call->kernel.value]));
  if (kernels.size() != 2 + std::size(products))
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' has {} kernels: give a bundle of "
                            "pipeline/calibrate.mlir of this version",
                            options.file, kernels.size()));
  kernels[1].flops = flopsOfNumber * double(bytesOf(kernels[1]) / 4);
  CalibrationKernels out{std::move(kernels[0]), std::move(kernels[1]), {}, {}};
  for (size_t k = 0; k < std::size(products); ++k) {
    const auto [type, bytes] = products[k];
    const auto edge =
        uint32_t(std::lround(std::sqrt(bytesOf(kernels[2 + k]) / bytes)));
    out.matmuls.push_back({type, edge, edge, edge, std::move(kernels[2 + k])});
  }
  if (architecture.empty() && options.file.empty())
    MGPU_TRY(addHostKernels(options, out));
  return out;
}

} // namespace mgpu::pipeline
