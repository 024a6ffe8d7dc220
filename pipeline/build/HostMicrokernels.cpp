// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/HostMicrokernels.h"

#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <vector>

namespace mgpu::pipeline {

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

std::string hostMicrokernels() {
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

} // namespace mgpu::pipeline
