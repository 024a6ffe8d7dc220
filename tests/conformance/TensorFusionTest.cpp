// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random rows of linalg operations and parallel loops, of which some may share
// a launch and some must not: the bits are those of a launch for each.
#include "tests/conformance/Execute.h"
#include "tests/conformance/Import.h"
#include "tests/unit/Sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <random>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

constexpr int numSquares = 4, numRows = 3;

/// Operations on squares %s0.. and rows %r0.., and copies of a random choice of
/// them to the host.
class Generator {
public:
  /// Squares of `extent` rows.
  Generator(uint32_t seed, int extent)
      : random(seed), extent(extent),
        row(fmt::format("memref<{}xf32>", extent)),
        square(fmt::format("memref<{0}x{0}xf32>", extent)) {}

  std::string program() {
    std::string arguments, body;
    auto buffers = [&](char kind, int count, const std::string &type) {
      for (int k = 0; k < count; ++k) {
        arguments += fmt::format("{}%h{}{}: {}", arguments.empty() ? "" : ", ",
                                 kind, k, type);
        body += fmt::format("  %{0}{1} = mgpu.alloc %d : !mgpu.device -> {2}\n",
                            kind, k, type);
        if (k % 2 == 0)
          body += fmt::format("  mgpu.memcpy %{0}{1}, %h{0}{1}, %d, %host : "
                              "{2}, {2}, !mgpu.device, !mgpu.device\n",
                              kind, k, type);
        else // starts on the device
          body +=
              fmt::format("  linalg.fill ins(%one : f32) outs(%{}{} : {})\n",
                          kind, k, type);
      }
    };
    buffers('s', numSquares, square);
    buffers('r', numRows, row);
    for (uint32_t k = 3 + pick(8); k > 0; --k)
      body += operation();
    // What is not copied back may be read by nobody.
    for (int k = 0; k < numSquares; ++k)
      if (pick(2))
        body += back('s', k, square);
    for (int k = 0; k < numRows; ++k)
      if (k == 0 || pick(2))
        body += back('r', k, row);
    return "mgpu.device_config @config #mgpu.device_config<numDevices = 1>\n"
           "#ij = affine_map<(i, j) -> (i, j)>\n"
           "#ji = affine_map<(i, j) -> (j, i)>\n"
           "#i = affine_map<(i, j) -> (i)>\n#k = affine_map<(i) -> (i)>\n"
           "func.func @main(" +
           arguments +
           ") {\n"
           "  %cm1 = arith.constant -1 : index\n"
           "  %c0 = arith.constant 0 : index\n"
           "  %c1 = arith.constant 1 : index\n"
           "  %end = arith.constant " +
           std::to_string(extent) +
           " : index\n"
           "  %one = arith.constant 1.0 : f32\n"
           "  %host = mgpu.get_device %cm1 : !mgpu.device\n"
           "  %d = mgpu.get_device %c0 : !mgpu.device\n" +
           body + "  return\n}\n";
  }

  uint32_t products = 0; ///< in the program

private:
  uint32_t pick(uint32_t count) { return random() % count; }

  std::string back(char kind, int k, const std::string &type) {
    return fmt::format("  mgpu.memcpy %h{0}{1}, %{0}{1}, %host, %d : {2}, {2}, "
                       "!mgpu.device, !mgpu.device\n",
                       kind, k, type);
  }

  /// `a OP b` into `to`, or added to it, in a generic of `kinds`.
  std::string generic(const std::string &maps, const std::string &kinds,
                      const std::string &a, const std::string &b,
                      const std::string &types, const std::string &to,
                      const std::string &type, bool accumulates) {
    std::string text = fmt::format(
        "  linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} "
        "ins({}, {} : {}) outs({} : {}) {{\n  ^bb0(%x: f32, %y: f32, %o: "
        "f32):\n    %v = arith.{} %x, %y : f32\n",
        maps, kinds, a, b, types, to, type, pick(2) ? "addf" : "subf");
    if (accumulates)
      text += "    %w = arith.addf %o, %v : f32\n";
    return text + (accumulates ? "    linalg.yield %w : f32\n  }\n"
                               : "    linalg.yield %v : f32\n  }\n");
  }

  std::string operation() {
    auto squareName = [](uint32_t k) { return "%s" + std::to_string(k); };
    auto rowName = [](uint32_t k) { return "%r" + std::to_string(k); };
    const std::string parallel = "\"parallel\", \"parallel\"";
    // A product of large squares takes too long here.
    switch (pick(extent < 100 ? 9 : 8)) {
    case 0:
      return fmt::format("  linalg.fill ins(%one : f32) outs({} : {})\n",
                         squareName(pick(numSquares)), square);
    case 1: { // of rows
      uint32_t a = pick(numRows), b = pick(numRows), to = pick(numRows);
      return generic("#k, #k, #k", "\"parallel\"", rowName(a), rowName(b),
                     row + ", " + row, rowName(to), row, pick(2));
    }
    case 2: { // the sums of a square's rows
      uint32_t a = pick(numSquares), b = pick(numRows), to = pick(numRows);
      if (b == to) // every step would read what the one before wrote
        b = (b + 1) % numRows;
      return generic("#ij, #i, #i", "\"parallel\", \"reduction\"",
                     squareName(a), rowName(b), square + ", " + row,
                     rowName(to), row, true);
    }
    case 3: { // a row to all columns
      uint32_t a = pick(numSquares), b = pick(numRows);
      return generic("#ij, #i, #ij", parallel, squareName(a), rowName(b),
                     square + ", " + row, squareName(a), square, pick(2));
    }
    case 4: { // by way of a square that nobody else reads
      uint32_t a = pick(numSquares), to = pick(numSquares);
      std::string between = fmt::format("%t{}", temporaries++);
      std::string types = square + ", " + square;
      return fmt::format("  {} = mgpu.alloc %d : !mgpu.device -> {}\n", between,
                         square) +
             generic("#ij, #ij, #ij", parallel, squareName(a), squareName(to),
                     types, between, square, false) +
             generic("#ij, #ij, #ij", parallel, between, squareName(a), types,
                     squareName(to), square, pick(2));
    }
    case 6: { // a loop, at its own point of what it writes
      uint32_t a = pick(numSquares), b = pick(numSquares),
               to = pick(numSquares);
      auto at = [&](uint32_t from) {
        return from != to && pick(3) == 0 ? "[%j, %i]" : "[%i, %j]";
      };
      return fmt::format("  scf.parallel (%i, %j) = (%c0, %c0) to (%end, %end) "
                         "step (%c1, %c1) {{\n"
                         "    %x = memref.load {0}{1} : {6}\n"
                         "    %y = memref.load {2}{3} : {6}\n"
                         "    %v = arith.{5} %x, %y : f32\n"
                         "    memref.store %v, {4}[%i, %j] : {6}\n  }}\n",
                         squareName(a), at(a), squareName(b), at(b),
                         squareName(to), pick(2) ? "addf" : "subf", square);
    }
    case 8: { // a product, which may begin with a fill, and a row added to it
      uint32_t to = pick(numSquares),
               a = (to + 1 + pick(numSquares - 1)) % numSquares,
               b = (to + 1 + pick(numSquares - 1)) % numSquares;
      std::string text;
      if (pick(2))
        text = fmt::format("  linalg.fill ins(%one : f32) outs({} : {})\n",
                           squareName(to), square);
      text += fmt::format("  linalg.matmul ins({0}, {1} : {3}, {3}) "
                          "outs({2} : {3})\n",
                          squareName(a), squareName(b), squareName(to), square);
      if (pick(4))
        text += generic("#ij, #i, #ij", parallel, squareName(to),
                        rowName(pick(numRows)), square + ", " + row,
                        squareName(pick(2) ? to : pick(numSquares)), square,
                        pick(2));
      ++products;
      return text;
    }
    default: { // squares, some transposed, none of those into itself
      uint32_t a = pick(numSquares), b = pick(numSquares),
               to = pick(numSquares);
      auto mapOf = [&](uint32_t from) {
        return from != to && pick(3) == 0 ? "#ji, " : "#ij, ";
      };
      std::string maps = mapOf(a);
      maps += mapOf(b);
      return generic(maps + "#ij", parallel, squareName(a), squareName(b),
                     square + ", " + square, squareName(to), square, pick(2));
    }
    }
  }

  std::mt19937 random;
  const int extent;
  uint32_t temporaries = 0;
  const std::string row, square;
};

HostData inputsOf(const std::vector<planner::ProgramArgument> &arguments) {
  HostData inputs;
  std::mt19937 random(3);
  for (const planner::ProgramArgument &argument : arguments) {
    size_t count = 1;
    for (int64_t size : argument.shape)
      count *= size_t(size);
    std::vector<float> values(count);
    for (float &value : values)
      value = float(random() % 1000) / 7;
    std::vector<std::byte> &bytes = inputs[argument.name];
    bytes.resize(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return inputs;
}

size_t launchesOf(const planner::Dag &dag) {
  return size_t(
      std::ranges::count_if(dag.nodes, [](const planner::DagNode &node) {
        return planner::workClass(node) == planner::WorkClass::Kernel;
      }));
}

class TensorFusion : public testing::TestWithParam<int> {};

TEST_P(TensorFusion, GivesTheBitsOfALaunchForEach) {
  Importer importer;
  KernelCache cache;
  size_t launches[2] = {}, buffers[2] = {}, products = 0, fusedProducts = 0;
  for (uint32_t seed = 0; seed < sweep(8, 16); ++seed) {
    Generator generator(seed, GetParam());
    std::string text = generator.program();
    products += generator.products;
    HostData results[2];
    for (bool fuse : {false, true}) {
      ImportRequest request;
      request.text = text;
      request.name = "random";
      request.racesAreErrors = true;
      request.fuse = fuse;
      ImportOutcome outcome = importer.import(request);
      ASSERT_TRUE(outcome.dag) << outcome.dag.error().message << '\n' << text;
      auto objects = cache.compile(*outcome.dag);
      ASSERT_TRUE(objects) << objects.error().message;
      auto plan = makePlan(*outcome.dag, "list");
      ASSERT_TRUE(plan) << plan.error().message;
      auto got = execute(*outcome.dag, *plan, *objects,
                         inputsOf(outcome.arguments), 1);
      ASSERT_TRUE(got) << got.error().message;
      results[fuse] = *got;
      launches[fuse] += launchesOf(*outcome.dag);
      buffers[fuse] += outcome.dag->buffers.size();
      for (const planner::KernelSpec &kernel : outcome.dag->kernels)
        fusedProducts +=
            (*kernel.hostText())->find("product_loop") != std::string::npos;
    }
    EXPECT_EQ(difference(results[0], results[1]), "") << seed << '\n' << text;
  }
  // Some were fused, not all were, and some buffers were not needed.
  EXPECT_LT(launches[1], launches[0] * 4 / 5);
  EXPECT_GT(launches[1], launches[0] / 3);
  EXPECT_LT(buffers[1], buffers[0]);
  EXPECT_EQ(fusedProducts > 5, products > 5) << fusedProducts;
}

// A thread for each row, and a block for each: its threads' last elements are
// of the last row of 256, or not.
INSTANTIATE_TEST_SUITE_P(Extents, TensorFusion, testing::Values(13, 256, 263));

} // namespace
