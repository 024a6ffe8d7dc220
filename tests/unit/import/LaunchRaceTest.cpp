// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Races between the threads of one launch, and between two launches: of random
// kernels whose indices are sums, quotients and remainders of ids the importer
// says what trying all pairs of threads says.
#include "ImportText.h"

#include "llvm/ADT/STLExtras.h"

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
  /// The element is quotient * quotientFactor + remainder * remainderFactor of
  /// the index, by a divisor; without one, the index.
  int64_t divisor = 0, quotientFactor = 0, remainderFactor = 0;

  int64_t element(const Thread &thread, int64_t trip) const {
    const int64_t value = index.at(thread, trip);
    return divisor == 0 ? value
                        : value / divisor * quotientFactor +
                              value % divisor * remainderFactor;
  }
};

struct Touch {
  Thread thread;
  size_t access;
  bool writes;
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
      if (pick(2)) {
        access.divisor = 1 + pick(4);
        access.quotientFactor = pick(3);
        access.remainderFactor = pick(3);
      }
      accesses.push_back(access);
    }
  }

  /// A launch on `stream`; `number` tells its names from another's.
  std::string text(const char *stream, int number) const;
  bool hasRace() const;
  /// By element.
  std::map<int64_t, std::vector<Touch>> touched() const;

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

std::string RandomLaunch::text(const char *stream, int number) const {
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
    if (access.divisor > 0) {
      auto by =
          define(fmt::format("arith.constant {} : index", access.divisor));
      auto whole = define(fmt::format("arith.divui {}, {} : index", index, by));
      auto part = define(fmt::format("arith.remui {}, {} : index", index, by));
      auto wide = define(
          fmt::format("arith.constant {} : index", access.quotientFactor));
      auto narrow = define(
          fmt::format("arith.constant {} : index", access.remainderFactor));
      whole = define(fmt::format("arith.muli {}, {} : index", whole, wide));
      part = define(fmt::format("arith.muli {}, {} : index", part, narrow));
      index = define(fmt::format("arith.addi {}, {} : index", whole, part));
    }
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
  std::string constants;
  for (auto [k, size] : llvm::enumerate(
           std::array{extents[0], extents[1], extents[2], extents[3], trips}))
    constants +=
        fmt::format("  %x{}_{} = arith.constant {} : index\n", number, k, size);
  body = fmt::format("    %trips = arith.addi %x{}_4, %c0 : index\n", number) +
         body;
  return fmt::format("{0}  mgpu.launch %d0 grid(%x{1}_2, %x{1}_3) "
                     "block(%x{1}_0, %x{1}_1){2} {{\n{3}{4}  }}\n",
                     constants, number,
                     *stream ? fmt::format(" stream {}", stream) : "", ids,
                     body);
}

constexpr const char *memory =
    "  %w = mgpu.alloc %d0 : !mgpu.device -> memref<999xi32>\n";

std::map<int64_t, std::vector<Touch>> RandomLaunch::touched() const {
  std::map<int64_t, std::vector<Touch>> touched;
  Thread thread;
  for (thread[3] = 0; thread[3] < extents[3]; ++thread[3])
    for (thread[2] = 0; thread[2] < extents[2]; ++thread[2])
      for (thread[1] = 0; thread[1] < extents[1]; ++thread[1])
        for (thread[0] = 0; thread[0] < extents[0]; ++thread[0])
          for (size_t k = 0; k < accesses.size(); ++k)
            for (int64_t trip = 0; trip < trips; ++trip)
              if (const Access &access = accesses[k];
                  !access.isGuarded ||
                  access.guard.at(thread, trip) < access.limit)
                touched[access.element(thread, trip)].push_back(
                    {thread, k, access.writes});
  return touched;
}

bool RandomLaunch::hasRace() const {
  // There is a barrier before each access.
  auto areApart = [&](const Touch &a, const Touch &b) {
    return hasBarrier && a.access != b.access
               ? a.thread[2] != b.thread[2] || a.thread[3] != b.thread[3]
               : a.thread != b.thread;
  };
  for (const auto &[element, uses] : touched())
    for (const Touch &a : uses)
      for (const Touch &b : uses)
        if ((a.writes || b.writes) && areApart(a, b))
          return true;
  return false;
}

/// Whether the two touch one element, and one of them writes it.
bool doMeet(const RandomLaunch &first, const RandomLaunch &second) {
  const auto others = second.touched();
  for (const auto &[element, uses] : first.touched())
    if (auto at = others.find(element); at != others.end())
      for (const Touch &a : uses)
        for (const Touch &b : at->second)
          if (a.writes || b.writes)
            return true;
  return false;
}

TEST(LaunchRace, RandomLaunchesRaceWhereTheyMeet) {
  int racy = 0, clean = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    RandomLaunch first(2 * seed), second(2 * seed + 1);
    const std::string text =
        program(memory + first.text("%s0", 0) + second.text("%t0", 1));
    Imported imported = importText(text);
    const bool says = imported.countErrors("race on buffer") > 0;
    ASSERT_EQ(says, doMeet(first, second)) << "seed " << seed << '\n'
                                           << imported.text() << text;
    ASSERT_EQ(imported.countWarnings("possible race"), 0u) << imported.text();
    ++(says ? racy : clean);
  }
  EXPECT_GT(racy, 50);
  EXPECT_GT(clean, 10);
}

TEST(LaunchRace, RandomKernelsRaceWhereTwoThreadsMeet) {
  int racy = 0, clean = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    RandomLaunch launch(seed);
    const std::string text = program(memory + launch.text("", 0));
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

// A subgroup has a value of its own: two of a block's race, its lanes do not.
TEST(LaunchRace, SumsOfSubgroups) {
  const std::string sum =
      std::string(loadOwn) +
      "    %s = gpu.subgroup_reduce add %v : (f32) -> f32\n";
  auto store = [](const char *at) {
    return fmt::format("    memref.store %s, %a[{}] : memref<64xf32>\n", at);
  };
  EXPECT_EQ(racesOf(sum + store("%c0")), 1u);
  EXPECT_EQ(
      racesOf(sum + "    %g = arith.divui %i, %c32 : index\n" + store("%g")),
      0u);
  EXPECT_EQ(racesOf(sum +
                    "    %in = arith.cmpi ult, %i, %c32 : index\n"
                    "    scf.if %in {\n" +
                    store("%c0") + "    }\n"),
            0u);
  // The element of lane k is that of lane k of the other subgroup.
  EXPECT_EQ(
      racesOf(sum + "    %g = arith.remui %i, %c32 : index\n" + store("%g")),
      1u);
  Imported imported =
      importText(program(launch("%d0", "", sum + store("%c0"))));
  ASSERT_EQ(imported.errors.size(), 1u) << imported.text();
  EXPECT_NE(imported.errors[0].find("thread 32 of block 0 writes element 0, "
                                    "which thread 0 of block 0 writes too"),
            std::string::npos)
      << imported.errors[0];
}

// What an atomic operation finds, or a thread's own memory holds, follows from
// no operand that says how it differs.
TEST(LaunchRace, ValuesThatNoOperandTells) {
  const std::string store = "    memref.store %v, %a[%c0] : memref<64xf32>\n";
  EXPECT_EQ(racesOf("    %v = memref.atomic_rmw addf %one, %a2[%c0] : (f32, "
                    "memref<64xf32>) -> f32\n" +
                    store),
            1u);
  EXPECT_EQ(racesOf(loadOwn +
                    std::string("    %own = memref.alloca() : memref<1xf32>\n"
                                "    memref.store %v, %own[%c0] : "
                                "memref<1xf32>\n"
                                "    %w = memref.load %own[%c0] : "
                                "memref<1xf32>\n"
                                "    memref.store %w, %a[%c0] : "
                                "memref<64xf32>\n")),
            1u);
}

// A thread's own memory holds what is stored there, by whoever chooses it.
TEST(LaunchRace, AThreadsOwnMemoryHoldsWhatIsStored) {
  auto races = [](const std::string &value, const std::string &at,
                  const char *before = "", const char *after = "") {
    return racesOf("    %own = memref.alloca() : memref<64xf32>\n"
                   "    %u = memref.load %a2[%c0] : memref<64xf32>\n" +
                   std::string(loadOwn) + before + "    memref.store " + value +
                   ", %own[" + at + "] : memref<64xf32>\n" + after +
                   "    %w = memref.load %own[%c0] : memref<64xf32>\n"
                   "    memref.store %w, %a[%c0] : memref<64xf32>\n");
  };
  EXPECT_EQ(races("%u", "%c0"), 0u);
  EXPECT_EQ(races("%v", "%c0"), 1u);
  EXPECT_EQ(races("%u", "%i"), 1u);
  EXPECT_EQ(races("%u", "%c0",
                  "    %in = arith.cmpi ult, %i, %c32 : index\n"
                  "    scf.if %in {\n",
                  "    }\n"),
            1u);
}

// A counter is the same in a trip; the last one is not where trips differ.
TEST(LaunchRace, TheLastTripOfEachThread) {
  auto races = [](const char *end) {
    return racesOf(
        fmt::format("    %c1x = arith.constant 1 : index\n"
                    "    scf.for %k = %c0 to {} step %c1x {{\n"
                    "      %n = arith.index_cast %k : index to i32\n"
                    "      %f = arith.sitofp %n : i32 to f32\n"
                    "      memref.store %f, %a[%c0] : memref<64xf32>\n    }}\n",
                    end));
  };
  EXPECT_EQ(races("%c32"), 0u);
  Imported imported = importText(program(
      launch("%d0", "",
             "    %c1x = arith.constant 1 : index\n"
             "    scf.for %k = %c0 to %i step %c1x {\n"
             "      %n = arith.index_cast %k : index to i32\n"
             "      %f = arith.sitofp %n : i32 to f32\n"
             "      memref.store %f, %a[%c0] : memref<64xf32>\n    }\n")));
  EXPECT_EQ(imported.errors.size() + imported.countWarnings("possible race"),
            1u)
      << imported.text();
}

// That a block agrees on a sum of values says nothing of what else is made of
// them.
TEST(LaunchRace, ASumOfAllAndAnOwnValueAreNotTheSame) {
  EXPECT_EQ(
      racesOf(loadOwn +
              std::string("    %s = gpu.all_reduce add %v {} : (f32) -> f32\n"
                          "    %w = arith.addf %s, %v : f32\n"
                          "    memref.store %w, %a[%c0] : memref<64xf32>\n")),
      1u);
}

// Two places that are computed alike are compared once, however often each
// value on the way is used.
TEST(LaunchRace, EqualPlacesAreComparedOnce) {
  std::string body;
  for (const char *name : {"p", "q"}) {
    body += fmt::format("    %{0}v = memref.load %a2[%c0] : memref<64xf32>\n"
                        "    %{0}0 = arith.fptosi %{0}v : f32 to i32\n",
                        name);
    for (int k = 0; k < 60; ++k)
      body += fmt::format("    %{0}{1} = arith.muli %{0}{2}, %{0}{2} : i32\n",
                          name, k + 1, k);
    body += fmt::format("    %{0} = arith.index_cast %{0}60 : i32 to index\n"
                        "    memref.store %one, %a[%{0}] : memref<64xf32>\n",
                        name);
  }
  EXPECT_EQ(racesOf(body), 0u);
}

// A sum whose steps from thread to thread cancel is looked at once, however
// often it is doubled.
TEST(LaunchRace, StepsThatCancelAreFoundOnce) {
  std::string body = "    %c3 = arith.constant 3 : index\n"
                     "    %c2 = arith.constant 2 : index\n"
                     "    %p = arith.muli %i, %c3 : index\n"
                     "    %q = arith.muli %i, %c2 : index\n"
                     "    %r = arith.subi %p, %q : index\n"
                     "    %x0 = arith.subi %r, %i : index\n";
  for (int k = 0; k < 60; ++k)
    body +=
        fmt::format("    %x{} = arith.addi %x{}, %x{} : index\n", k + 1, k, k);
  body += "    %in = arith.cmpi ult, %x60, %c3 : index\n"
          "    scf.if %in {\n"
          "      memref.store %one, %a[%i] : memref<64xf32>\n    }\n";
  EXPECT_EQ(racesOf(body), 0u);
}

// Each value is worked out once for a thread, however often it is used.
TEST(LaunchRace, ValuesThatAreUsedTwiceAreWorkedOutOnce) {
  std::string body = "    %x0 = arith.index_cast %i : index to i32\n";
  for (int k = 0; k < 60; ++k)
    body +=
        fmt::format("    %x{} = arith.muli %x{}, %x{} : i32\n", k + 1, k, k);
  body += "    %m = arith.constant 63 : i32\n"
          "    %n = arith.andi %x60, %m : i32\n"
          "    %j = arith.index_cast %n : i32 to index\n"
          "    %v = memref.load %a2[%i] : memref<64xf32>\n"
          "    memref.store %v, %a[%j] : memref<64xf32>\n";
  Imported imported = importText(program(launch("%d0", "", body)));
  EXPECT_TRUE(imported.errors.empty()) << imported.text();
  EXPECT_GT(imported.countWarnings("possible race"), 0u) << imported.text();
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

TEST(LaunchRace, AtomicsRaceWithOtherAccessesAlone) {
  const std::string add =
      "    %old = memref.atomic_rmw addf %one, %a[%c0] : (f32, memref<64xf32>) "
      "-> f32\n";
  EXPECT_EQ(racesOf(add), 0u);
  const std::string read = "    %v = memref.load %a[%c0] : memref<64xf32>\n";
  EXPECT_EQ(racesOf(add + read), 1u);
  EXPECT_EQ(racesOf(add + "    gpu.barrier\n" + read), 0u);
  // A thread may wait here until the others have come.
  EXPECT_EQ(racesOf(add + read +
                    "    scf.while : () -> () {\n"
                    "      %now = memref.load %a[%c0] : memref<64xf32>\n"
                    "      %on = arith.cmpf olt, %now, %one : f32\n"
                    "      scf.condition(%on)\n    } do {\n"
                    "      scf.yield\n    }\n"),
            0u);
}

TEST(LaunchRace, ABarrierOrdersWhatIsOnItsTwoSides) {
  const std::string write = "    memref.store %v, %a[%i] : memref<64xf32>\n",
                    back = "    %k = arith.subi %c63, %i : index\n"
                           "    %u = memref.load %a[%k] : memref<64xf32>\n",
                    first = std::string(loadOwn) +
                            "    %c63 = arith.constant 63 : index\n";
  EXPECT_EQ(racesOf(first + write + back), 1u);
  EXPECT_EQ(racesOf(first + write + "    gpu.barrier\n" + back), 0u);
  EXPECT_EQ(racesOf(first + "    gpu.barrier\n" + write + back), 1u);
}

TEST(LaunchRace, LanesOfVectorsCount) {
  auto apart = [](int step) {
    return fmt::format("    %step = arith.constant {} : index\n"
                       "    %at = arith.muli %i, %step : index\n"
                       "    %in = arith.cmpi ult, %i, %c8 : index\n"
                       "    %v = vector.load %a2[%i] : memref<64xf32>, "
                       "vector<4xf32>\n    scf.if %in {{\n"
                       "      vector.store %v, %a[%at] : memref<64xf32>, "
                       "vector<4xf32>\n    }}\n",
                       step);
  };
  EXPECT_EQ(racesOf(apart(4)), 0u);
  EXPECT_EQ(racesOf(apart(3)), 1u);
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
