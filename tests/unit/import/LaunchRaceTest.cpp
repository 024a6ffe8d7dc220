// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Races between the threads of one launch: of random affine kernels the
// importer says what trying all pairs of threads says.
#include "ImportText.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace mgpu::planner {
namespace {

constexpr int numIds = 4; // thread x, y, block x, y
using Thread = std::array<int64_t, numIds>;

/// constant + sum of factors times ids and the loop's counter.
struct Form {
  int64_t constant = 0, loopFactor = 0;
  std::array<int64_t, numIds> factors{};

  int64_t at(const Thread &thread, int64_t trip) const {
    int64_t value = constant + loopFactor * trip;
    for (int k = 0; k < numIds; ++k)
      value += factors[k] * thread[k];
    return value;
  }
};

struct Access {
  Form index, guard; ///< made where the guard is below `limit`
  int64_t limit = 0;
  bool isGuarded = false, writes = false;
};

class RandomLaunch {
public:
  explicit RandomLaunch(uint32_t seed) : random(seed) {
    for (int64_t &extent : extents)
      extent = 1 + pick(3);
    trips = 1 + pick(3);
    hasBarrier = pick(3) == 0;
    for (int count = 1 + pick(3); count > 0; --count) {
      Access access{randomForm(true), randomForm(false), pick(6), pick(3) == 0,
                    accesses.empty() || pick(2)};
      accesses.push_back(access);
    }
  }

  std::string text() const;
  bool hasRace() const;

private:
  int pick(int count) { return int(random() % uint32_t(count)); }
  /// Mostly as kernels are written: ids one beyond the other.
  Form randomForm(bool mayLoop) {
    Form form;
    form.constant = pick(3);
    int64_t stride = 1;
    for (int k = 0; k < numIds; ++k) {
      if (pick(6) == 0)
        continue;
      form.factors[k] = pick(4) == 0 ? pick(5) : stride;
      stride *= extents[k];
    }
    if (mayLoop && pick(2))
      form.loopFactor = pick(2) ? stride : 1 + pick(2);
    return form;
  }

  std::mt19937 random;
  std::array<int64_t, numIds> extents{};
  int64_t trips = 1;
  bool hasBarrier = false;
  std::vector<Access> accesses;
};

std::string RandomLaunch::text() const {
  int values = 0;
  std::string body;
  auto define = [&](const std::string &what) {
    std::string name = fmt::format("%n{}", values++);
    body += fmt::format("    {} = {}\n", name, what);
    return name;
  };
  auto valueOf = [&](const Form &form) {
    std::string sum =
        define(fmt::format("arith.constant {} : index", form.constant));
    const char *names[] = {"%tx", "%ty", "%bx", "%by", "%trip"};
    for (int k = 0; k <= numIds; ++k) {
      const int64_t factor = k < numIds ? form.factors[k] : form.loopFactor;
      if (factor == 0)
        continue;
      auto by = define(fmt::format("arith.constant {} : index", factor));
      auto part =
          define(fmt::format("arith.muli {}, {} : index", names[k], by));
      sum = define(fmt::format("arith.addi {}, {} : index", sum, part));
    }
    return sum;
  };
  // What is written follows from all ids, so no two threads write one value.
  const std::string mine = valueOf({1, 0, {1, 10, 100, 1000}});
  const std::string whole =
      define(fmt::format("arith.index_cast {} : index to i32", mine));
  for (const Access &access : accesses) {
    if (hasBarrier)
      body += "    gpu.barrier\n";
    body += "    scf.for %trip = %c0 to %trips step %c1 {\n";
    if (access.isGuarded) {
      auto left = valueOf(access.guard);
      auto limit =
          define(fmt::format("arith.constant {} : index", access.limit));
      auto lets =
          define(fmt::format("arith.cmpi slt, {}, {} : index", left, limit));
      body += fmt::format("    scf.if {} {{\n", lets);
    }
    auto index = valueOf(access.index);
    if (access.writes)
      body += fmt::format("    memref.store {}, %w[{}] : memref<999xi32>\n",
                          whole, index);
    else
      define(fmt::format("memref.load %w[{}] : memref<999xi32>", index));
    body += access.isGuarded ? "    }\n    }\n" : "    }\n";
  }
  std::string ids;
  for (auto [name, what] : {std::pair("tx", "thread_id x"),
                            {"ty", "thread_id y"},
                            {"bx", "block_id x"},
                            {"by", "block_id y"}})
    ids += fmt::format("    %{} = gpu.{}\n", name, what);
  return program(fmt::format(
      "  %w = mgpu.alloc %d0 : !mgpu.device -> memref<999xi32>\n"
      "  %trips = arith.constant {} : index\n  %x0 = arith.constant {} : "
      "index\n"
      "  %x1 = arith.constant {} : index\n  %x2 = arith.constant {} : index\n"
      "  %x3 = arith.constant {} : index\n"
      "  mgpu.launch %d0 grid(%x2, %x3) block(%x0, %x1) {{\n{}{}  }}\n",
      trips, extents[0], extents[1], extents[2], extents[3], ids, body));
}

bool RandomLaunch::hasRace() const {
  // By element: who touches it, and whether to write.
  std::map<int64_t, std::vector<std::pair<Thread, bool>>> touched;
  Thread thread;
  for (thread[3] = 0; thread[3] < extents[3]; ++thread[3])
    for (thread[2] = 0; thread[2] < extents[2]; ++thread[2])
      for (thread[1] = 0; thread[1] < extents[1]; ++thread[1])
        for (thread[0] = 0; thread[0] < extents[0]; ++thread[0])
          for (const Access &access : accesses)
            for (int64_t trip = 0; trip < trips; ++trip)
              if (!access.isGuarded ||
                  access.guard.at(thread, trip) < access.limit)
                touched[access.index.at(thread, trip)].push_back(
                    {thread, access.writes});
  auto areApart = [&](const Thread &a, const Thread &b) {
    return hasBarrier ? a[2] != b[2] || a[3] != b[3] : a != b;
  };
  for (const auto &[element, uses] : touched)
    for (const auto &[a, aWrites] : uses)
      for (const auto &[b, bWrites] : uses)
        if ((aWrites || bWrites) && areApart(a, b))
          return true;
  return false;
}

TEST(LaunchRace, RandomKernelsRaceWhereTwoThreadsMeet) {
  int racy = 0, clean = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    RandomLaunch launch(seed);
    const std::string text = launch.text();
    Imported imported = importText(text);
    const bool says = imported.countErrors("race within a launch") > 0;
    ASSERT_EQ(says, launch.hasRace()) << "seed " << seed << '\n'
                                      << imported.text() << text;
    ASSERT_EQ(bool(imported.program), !says) << imported.text();
    ++(says ? racy : clean);
  }
  EXPECT_GT(racy, 50);
  EXPECT_GT(clean, 50);
}

size_t racesOf(const std::string &body) {
  Imported imported = importText(program(launch("%d0", "", body)));
  return imported.countErrors("race within a launch");
}

constexpr const char *loadOwn =
    "    %v = memref.load %a2[%i] : memref<64xf32>\n";

TEST(LaunchRace, ValuesThatAreTheSameDoNotRace) {
  EXPECT_EQ(racesOf("    memref.store %one, %a[%c0] : memref<64xf32>\n"), 0u);
  EXPECT_EQ(racesOf(loadOwn + std::string("    memref.store %v, %a[%c0] : "
                                          "memref<64xf32>\n")),
            1u);
  // All threads have the sum.
  EXPECT_EQ(
      racesOf(loadOwn + std::string("    %s = gpu.all_reduce add %v {} : (f32) "
                                    "-> f32\n    memref.store %s, %a[%c0] : "
                                    "memref<64xf32>\n")),
      0u);
}

TEST(LaunchRace, GuardsAreSeen) {
  const std::string shift =
      "    %n = arith.constant 63 : index\n"
      "    %in = arith.cmpi slt, %i, %n : index\n    scf.if %in {\n"
      "      %k = arith.addi %i, %c1 : index\n"
      "      %v = memref.load %a[%k] : memref<64xf32>\n"
      "      memref.store %v, %a[%i] : memref<64xf32>\n    }\n";
  EXPECT_EQ(racesOf(shift), 1u);
  const std::string first =
      "    %is = arith.cmpi eq, %i, %c0 : index\n    scf.if %is {\n"
      "      %v = memref.load %a2[%i] : memref<64xf32>\n"
      "      memref.store %v, %a[%c0] : memref<64xf32>\n    }\n";
  EXPECT_EQ(racesOf(first), 0u);
}

TEST(LaunchRace, TheSentenceNamesTwoThreads) {
  Imported imported = importText(
      program(launch("%d0", "",
                     loadOwn + std::string("    %h = arith.constant 3 : index\n"
                                           "    memref.store %v, %a[%h] : "
                                           "memref<64xf32>\n"))));
  ASSERT_EQ(imported.errors.size(), 1u) << imported.text();
  EXPECT_EQ(
      imported.errors[0],
      "race within a launch on buffer 'a': thread 1 of block 0 writes "
      "element 3, which thread 0 of block 0 writes too, in no order; give "
      "each thread elements of its own, or use memref.atomic_rmw");
}

} // namespace
} // namespace mgpu::planner
