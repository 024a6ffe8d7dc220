// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes a launch is said to touch, against those it does touch: random
// kernels are run by hand, thread by thread.
#include "ImportText.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

namespace mgpu::planner {
namespace {

using Bytes = std::set<int64_t>;

void addBytes(const Box &box, Bytes &bytes) {
  std::vector<int64_t> at(box.sizes.size(), 0);
  if (box.numElements() == 0)
    return;
  while (true) {
    int64_t address = box.offset;
    for (size_t k = 0; k < at.size(); ++k)
      address += at[k] * box.strides[k];
    for (uint32_t b = 0; b < box.elementBytes; ++b)
      bytes.insert(address + b);
    size_t k = at.size();
    while (k > 0 && ++at[k - 1] == box.sizes[k - 1])
      at[--k] = 0;
    if (k == 0)
      return;
  }
}

/// What a launch touches of one buffer.
struct Touched {
  Bytes reads, writes;
};

Touched touchedBy(const DagNode &node, BufferId buffer) {
  Touched touched;
  for (const BufferUse &use : node.uses)
    if (use.buffer == buffer) {
      if (use.reads)
        addBytes(use.box, touched.reads);
      if (use.writes)
        addBytes(use.box, touched.writes);
    }
  return touched;
}

bool covers(const Bytes &all, const Bytes &some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

// Counters 0..2 are thread ids, 3..5 block ids, 6 a loop's.
constexpr int numCounters = 7, loopCounter = 6;

struct Expression {
  int64_t constant = 0;
  int64_t factors[numCounters] = {};

  int64_t at(const int64_t (&counters)[numCounters]) const {
    int64_t sum = constant;
    for (int k = 0; k < numCounters; ++k)
      sum += factors[k] * counters[k];
    return sum;
  }
};

/// A kernel of a few accesses to one view of one buffer, with the bytes it
/// touches worked out by running it.
class RandomKernel {
public:
  explicit RandomKernel(uint32_t seed) : random(seed) {
    for (int k = 0; k < loopCounter; ++k)
      extents[k] = pick(3) ? 1 + pick(4) : 1;
    loopLower = pick(4) - 1;
    loopStep = 1 + pick(3);
    loopTrips = 1 + pick(4);
    extents[loopCounter] = loopTrips;
    int rank = 1 + pick(3), numAccesses = 1 + pick(3);
    sizes.assign(rank, 1);
    for (int k = 0; k < numAccesses; ++k)
      addAccess();
    chooseView();
    for (Access &access : accesses)
      run(access);
  }

  std::string text();
  Touched touched;
  bool exact = true; ///< every access is affine and unguarded

private:
  struct Access {
    std::vector<Expression> indices;
    bool writes, inLoop;
    bool masked;    ///< runs where thread x is even
    bool nonAffine; ///< index 0 is x % 2
    bool byWindow;  ///< through a subview made in the kernel
  };

  int pick(int count) { return int(random() % uint32_t(count)); }
  void addAccess();
  void chooseView();
  void run(const Access &access);
  std::string value(const Expression &expression, bool inLoop);
  std::string accessText(const Access &access);
  std::string layout(bool dynamicOffset) const;
  std::string shape(const std::vector<int64_t> &dims) const;
  template <typename... Args>
  std::string define(fmt::format_string<Args...> format, Args &&...args) {
    std::string name = fmt::format("%n{}", numValues++);
    body += "    " + name + " = " +
            fmt::format(format, std::forward<Args>(args)...) + "\n";
    return name;
  }

  std::mt19937 random;
  int64_t extents[numCounters];
  int64_t loopLower, loopStep, loopTrips;
  std::vector<int64_t> sizes;                     ///< of the view
  std::vector<int64_t> rootSizes, offsets, steps; ///< of the subview
  std::vector<int64_t> strides;                   ///< of the view
  int64_t viewOffset = 0;
  std::vector<Access> accesses;
  std::string body;
  int numValues = 0;
};

void RandomKernel::addAccess() {
  Access access;
  access.writes = pick(2);
  access.inLoop = pick(3) == 0;
  access.masked = pick(6) == 0;
  access.nonAffine = pick(8) == 0;
  access.byWindow = pick(4) == 0;
  for (int64_t &size : sizes) {
    Expression index;
    int64_t low = 0, high = 0;
    for (int k = 0; k < numCounters; ++k) {
      if (pick(2) || (k == loopCounter && !access.inLoop))
        continue;
      index.factors[k] = pick(9) - 4;
      // The loop's counter is lower + trip * step.
      int64_t scale = k == loopCounter ? loopStep : 1;
      int64_t start = k == loopCounter ? loopLower : 0;
      int64_t reach = index.factors[k] * scale * (extents[k] - 1);
      low += index.factors[k] * start + std::min<int64_t>(reach, 0);
      high += index.factors[k] * start + std::max<int64_t>(reach, 0);
    }
    int slack = pick(3);
    index.constant = slack - low;
    size = std::max(size, high - low + slack + 1 + pick(2));
    access.indices.push_back(index);
  }
  if (access.nonAffine)
    sizes[0] = std::max<int64_t>(sizes[0], 2);
  exact &= !access.masked && !access.nonAffine;
  accesses.push_back(access);
}

void RandomKernel::chooseView() {
  int64_t stride = 1;
  bool isWhole = pick(2);
  for (int64_t size : sizes) {
    offsets.push_back(isWhole ? 0 : pick(3));
    steps.push_back(isWhole ? 1 : 1 + pick(3));
    rootSizes.push_back(offsets.back() + (size - 1) * steps.back() + 1 +
                        (isWhole ? 0 : pick(2)));
  }
  strides.resize(sizes.size());
  for (size_t k = sizes.size(); k-- > 0; stride *= rootSizes[k]) {
    strides[k] = stride * steps[k];
    viewOffset += stride * offsets[k];
  }
}

void RandomKernel::run(const Access &access) {
  int64_t at[numCounters] = {};
  std::function<void(int)> enumerate = [&](int counter) {
    if (counter == numCounters) {
      if (access.masked && at[0] % 2 != 0)
        return;
      int64_t address = viewOffset;
      for (size_t k = 0; k < sizes.size(); ++k)
        address +=
            strides[k] *
            (k == 0 && access.nonAffine ? at[0] % 2 : access.indices[k].at(at));
      for (int64_t b = 0; b < 4; ++b)
        (access.writes ? touched.writes : touched.reads)
            .insert(address * 4 + b);
      return;
    }
    for (int64_t k = 0; k < extents[counter]; ++k) {
      at[counter] = counter == loopCounter ? loopLower + k * loopStep : k;
      enumerate(counter + 1);
      if (counter == loopCounter && !access.inLoop)
        break;
    }
  };
  enumerate(0);
}

std::string RandomKernel::value(const Expression &expression, bool inLoop) {
  static const char *names[] = {"%tx", "%ty", "%tz", "%bx", "%by", "%bz", "%k"};
  std::string sum = define("arith.constant {} : index", expression.constant);
  for (int k = 0; k < numCounters; ++k) {
    int64_t factor = expression.factors[k];
    if (factor == 0 || (k == loopCounter && !inLoop))
      continue;
    bool subtracts = pick(3) == 0;
    std::string scale =
        define("arith.constant {} : index", subtracts ? -factor : factor);
    std::string term = define("arith.muli {}, {} : index", names[k], scale);
    if (pick(4) == 0) { // through a narrower type and back
      term = define("arith.index_cast {} : index to i32", term);
      term = define("arith.index_cast {} : i32 to index", term);
    }
    sum = define("arith.{} {}, {} : index", subtracts ? "subi" : "addi", sum,
                 term);
  }
  return sum;
}

std::string RandomKernel::shape(const std::vector<int64_t> &dims) const {
  std::string text;
  for (int64_t dim : dims)
    text += fmt::format("{}x", dim);
  return text + "f32";
}

std::string RandomKernel::layout(bool dynamicOffset) const {
  return fmt::format("strided<[{}], offset: {}>", fmt::join(strides, ", "),
                     dynamicOffset ? "?" : std::to_string(viewOffset));
}

std::string RandomKernel::accessText(const Access &access) {
  body.clear();
  if (access.inLoop)
    body += "    scf.for %k = %lower to %upper step %step {\n";
  if (access.masked) {
    std::string two = define("arith.constant 2 : index");
    std::string rest = define("arith.remui %tx, {} : index", two);
    std::string even = define("arith.cmpi eq, {}, %c0 : index", rest);
    body += fmt::format("    scf.if {} {{\n", even);
  }
  std::vector<std::string> names;
  for (const Expression &index : access.indices)
    names.push_back(value(index, access.inLoop));
  if (access.nonAffine) {
    std::string two = define("arith.constant 2 : index");
    names[0] = define("arith.remui %tx, {} : index", two);
  }
  std::string memref = "%view",
              type = fmt::format("memref<{}, {}>", shape(sizes), layout(false));
  if (access.byWindow) {
    // One element, at the place of the access.
    std::vector<int64_t> ones(sizes.size(), 1);
    std::string windowType =
        fmt::format("memref<{}, {}>", shape(ones), layout(true));
    memref = define("memref.subview {}[{}] [{}] [{}] : {} to {}", memref,
                    fmt::join(names, ", "), fmt::join(ones, ", "),
                    fmt::join(ones, ", "), type, windowType);
    type = windowType;
    names.assign(sizes.size(), "%c0");
  }
  if (access.writes)
    body += fmt::format("    memref.store %one, {}[{}] : {}\n", memref,
                        fmt::join(names, ", "), type);
  else
    define("memref.load {}[{}] : {}", memref, fmt::join(names, ", "), type);
  for (int k = 0; k < access.masked + access.inLoop; ++k)
    body += "    }\n";
  return body;
}

std::string RandomKernel::text() {
  std::string inside;
  for (const char *id : {"thread", "block"})
    for (const char *axis : {"x", "y", "z"})
      inside +=
          fmt::format("    %{}{} = gpu.{}_id {}\n", id[0], axis, id, axis);
  for (const Access &access : accesses)
    inside += accessText(access);
  std::string text;
  for (int k = 0; k < loopCounter; ++k)
    text +=
        fmt::format("  %extent{} = arith.constant {} : index\n", k, extents[k]);
  // Not every upper bound is a whole number of steps.
  text += fmt::format("  %lower = arith.constant {} : index\n"
                      "  %upper = arith.constant {} : index\n"
                      "  %step = arith.constant {} : index\n",
                      loopLower,
                      loopLower + (loopTrips - 1) * loopStep + 1 +
                          pick(int(loopStep)),
                      loopStep);
  text += fmt::format(
      "  %root = mgpu.alloc %d0 : !mgpu.device -> memref<{}>\n"
      "  %view = memref.subview %root[{}] [{}] [{}] : memref<{}> to "
      "memref<{}, {}>\n",
      shape(rootSizes), fmt::join(offsets, ", "), fmt::join(sizes, ", "),
      fmt::join(steps, ", "), shape(rootSizes), shape(sizes), layout(false));
  text += "  mgpu.launch %d0 grid(%extent3, %extent4, %extent5) "
          "block(%extent0, %extent1, %extent2) {\n" +
          inside + "  }\n";
  return program(text);
}

std::optional<BufferId> bufferNamed(const Dag &dag, std::string_view name) {
  for (size_t k = 0; k < dag.buffers.size(); ++k)
    if (dag.buffers[k].name == name)
      return BufferId{uint32_t(k)};
  return std::nullopt;
}

TEST(Access, RandomAffineKernelsTouchTheirBoxes) {
  int numExact = 0;
  ImportOptions lenient;
  lenient.racesAreErrors = false;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    RandomKernel kernel(seed);
    std::string text = kernel.text();
    // Threads race in many of them.
    Imported imported = importText(text, lenient);
    ASSERT_TRUE(imported.program) << imported.text() << text;
    auto nodes = kernelNodes(imported.dag());
    ASSERT_EQ(nodes.size(), 1u);
    auto root = bufferNamed(imported.dag(), "root");
    ASSERT_TRUE(root);
    Touched said = touchedBy(*nodes[0], *root);
    ASSERT_TRUE(covers(said.reads, kernel.touched.reads) &&
                covers(said.writes, kernel.touched.writes))
        << "seed " << seed << '\n'
        << text;
    if (kernel.exact) {
      ++numExact;
      ASSERT_TRUE(said.reads == kernel.touched.reads &&
                  said.writes == kernel.touched.writes)
          << "seed " << seed << '\n'
          << text;
    }
    auto bytes = int64_t(imported.dag().buffer(*root).sizeBytes);
    for (const Bytes *set : {&said.reads, &said.writes})
      ASSERT_TRUE(set->empty() ||
                  (*set->begin() >= 0 && *set->rbegin() < bytes))
          << "seed " << seed;
  }
  EXPECT_GT(numExact, 500);
}

Touched touchedOfA(const std::string &body) {
  Imported imported = importText(program(body));
  EXPECT_TRUE(imported.program) << imported.text();
  if (!imported.program)
    return {};
  auto nodes = kernelNodes(imported.dag());
  EXPECT_EQ(nodes.size(), 1u);
  return touchedBy(*nodes[0], *bufferNamed(imported.dag(), "a"));
}

Bytes range(int64_t first, int64_t last) {
  Bytes bytes;
  for (int64_t b = first; b < last; ++b)
    bytes.insert(b);
  return bytes;
}

TEST(Access, WhatCannotBeFollowedIsTheWholeView) {
  Touched data =
      touchedOfA(launch("%d0", "",
                        "    %v = memref.load %a[%i] : memref<64xf32>\n"
                        "    %n = arith.fptosi %v : f32 to i64\n"
                        "    %k = arith.index_cast %n : i64 to index\n"
                        "    memref.store %v, %a2[%k] : memref<64xf32>\n"
                        "    %w = memref.load %a[%k] : memref<64xf32>\n"));
  EXPECT_EQ(data.reads, range(0, 256));
  EXPECT_TRUE(data.writes.empty());
}

TEST(Access, AtomicReadsAndWrites) {
  Touched data =
      touchedOfA(launch("%d0", "",
                        "    %v = memref.atomic_rmw addf %one, %a[%c8] : (f32, "
                        "memref<64xf32>) -> f32\n"));
  EXPECT_EQ(data.reads, range(32, 36));
  EXPECT_EQ(data.writes, range(32, 36));
}

TEST(Access, VectorAccessIsTheWholeView) {
  Touched data = touchedOfA(
      launch("%d0", "",
             "    %v = vector.load %a[%c0] : memref<64xf32>, vector<4xf32>\n"));
  EXPECT_EQ(data.reads, range(0, 256));
  EXPECT_TRUE(data.writes.empty());
}

TEST(Access, LoopOfZeroTripsTouchesNothingForSure) {
  // The body never runs; what it would touch may be said or not, but a sure
  // use of it would be a false race.
  std::string body = launch("%d0", "%s0",
                            "    scf.for %k = %c8 to %c8 step %c1 {\n"
                            "      memref.store %one, %a[%k] : "
                            "memref<64xf32>\n    }\n") +
                     launch("%d0", "%t0",
                            "    memref.store %one, %a[%i] : "
                            "memref<64xf32>\n");
  Imported imported = importText(program(body));
  EXPECT_TRUE(imported.program) << imported.text();
}

TEST(Access, MoreWindowsThanAreKeptBecomeTheirHull) {
  std::string body;
  for (int k = 0; k < 20; ++k)
    body += fmt::format("    %n{0} = arith.constant {1} : index\n"
                        "    memref.store %one, %a[%n{0}] : memref<64xf32>\n",
                        k, 3 * k);
  Touched data = touchedOfA(launch("%d0", "", body));
  for (int k = 0; k < 20; ++k)
    EXPECT_TRUE(covers(data.writes, range(12 * k, 12 * k + 4))) << k;
}

TEST(Access, IndexOutsideIsAnErrorUnlessGuarded) {
  std::string access = "    %j = arith.addi %i, %c1 : index\n"
                       "    memref.store %one, %a[%j] : memref<64xf32>\n";
  Imported outside = importText(program(launch("%d0", "", access)));
  EXPECT_FALSE(outside.program);
  EXPECT_EQ(outside.countErrors("index 0 runs from 1 to 64, outside the 64"),
            1u)
      << outside.text();
  Touched data = touchedOfA(
      launch("%d0", "",
             "    %in = arith.cmpi ult, %i, %c32 : index\n    scf.if %in {\n" +
                 access + "    }\n"));
  EXPECT_EQ(data.writes, range(4, 132));
  // A guard that lets some thread out of bounds through is not an excuse.
  outside = importText(program(
      launch("%d0", "",
             "    %in = arith.cmpi ult, %i, %c64 : index\n    scf.if %in {\n" +
                 access + "    }\n")));
  EXPECT_EQ(outside.countErrors("index 0 runs from 1 to 64, outside the 64"),
            1u)
      << outside.text();
}

// 2^62 * 8 bytes does not fit: such an index must not wrap into the buffer.
TEST(Access, AddressesThatPassTheirTypeAreNotFollowed) {
  Touched data = touchedOfA(
      launch("%d0", "",
             "    %huge = arith.constant 4611686018427387904 : index\n"
             "    %far = arith.muli %i, %huge : index\n"
             "    %in = arith.cmpi ult, %far, %c1 : index\n    scf.if %in {\n"
             "      memref.store %one, %a[%far] : memref<64xf32>\n    }\n"));
  EXPECT_EQ(data.writes, range(0, 256));
}

} // namespace
} // namespace mgpu::planner
