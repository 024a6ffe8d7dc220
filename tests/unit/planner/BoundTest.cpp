// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounds of makespans against every schedule there is, and the witnesses that
// prove them.
#include "planner/schedule/bound/MakespanBound.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/planner/RandomProblem.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

/// One for each kind of machine that a problem can describe.
static const RandomProblemOptions machines[] = {
    {6, 1, 1, false, 4}, // one stream
    {7, 2, 1, false, 3}, // kernels and collectives of one device
    {7, 4, 3, false, 4}, // devices and links, nodes on several at once
    {6, 1, 1, true, 4},  // kernels that overlap as their shares allow
    {7, 3, 2, true, 4},  // both
};

TEST(Bound, NeverExceedsTheLeastMakespanAndIsProven) {
  for (const RandomProblemOptions &options : machines) {
    int equal = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      Problem problem = randomProblem(seed, options);
      Certificate certificate = makespanBound(problem);
      const double least = leastMakespan(problem);
      ASSERT_LE(certificate.boundUs, least + 1e-9) << seed;
      equal += certificate.boundUs > least - 1e-9;
      Result<void> verdict = check(certificate, problem);
      ASSERT_TRUE(verdict) << verdict.error().message;
    }
    EXPECT_GT(equal, options.isCumulative ? 8 : 65) << options.resources;
  }
}

// Measured times may be noise about nothing; beside others they must not make a
// proof fail that is one.
TEST(Bound, IsProvenOfNodesThatTakeNextToNothing) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Problem problem = randomProblem(seed, {40, 3, 2, false, 12});
    for (uint32_t i = 0; i < problem.size(); ++i)
      problem.durations[i] *= i % 3 ? 7e-18 : 0.0937;
    Result<void> verdict = check(makespanBound(problem), problem);
    ASSERT_TRUE(verdict) << seed << ": " << verdict.error().message;
  }
}

TEST(Bound, CertificatesThatClaimMoreAreRejected) {
  for (const RandomProblemOptions &options : machines)
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      Problem problem = randomProblem(seed, options);
      const Certificate good = makespanBound(problem);
      for (double more : {1e-3, 5.0}) {
        Certificate bad = good;
        bad.boundUs += more;
        EXPECT_FALSE(check(bad, problem)) << seed;
        for (uint32_t i = 0; i < problem.size(); ++i) {
          bad = good;
          bad.heads[i].us += more;
          EXPECT_FALSE(check(bad, problem)) << seed << ", head " << i;
          bad = good;
          bad.tails[i].us += more;
          EXPECT_FALSE(check(bad, problem)) << seed << ", tail " << i;
        }
      }
      Certificate bad = good;
      bad.heads[0] = {std::nan(""), NoReason{}};
      EXPECT_FALSE(check(bad, problem));
      bad = good;
      bad.heads[0].reason = PathReason{uint32_t(problem.size() - 1)};
      EXPECT_FALSE(check(bad, problem));
      bad = good;
      bad.tails.pop_back();
      EXPECT_FALSE(check(bad, problem));
      bad = good;
      bad.argument = NodeArgument{problem.size()};
      EXPECT_FALSE(check(bad, problem));
    }
}

TEST(Bound, CertificatesReadBackAsTheyAre) {
  for (const RandomProblemOptions &options : machines) {
    Problem problem = randomProblem(3, options);
    // As for a plan of two phases.
    std::string text = toText(std::vector<Certificate>{makespanBound(problem),
                                                       makespanBound(problem)});
    Result<std::vector<Certificate>> back = parseCertificates(text);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(toText(*back), text);
    ASSERT_EQ(back->size(), 2u);
    for (const Certificate &each : *back)
      EXPECT_TRUE(check(each, problem));
    // Cut short after any line, it says so.
    for (size_t end = text.find('\n'); end + 1 < text.size();
         end = text.find('\n', end + 1))
      EXPECT_FALSE(parseCertificates(std::string_view(text).substr(0, end)));
  }
}

/// A random problem with one memory, which holds a share of its buffers. What
/// nobody reads is kept in some and not in others.
static Problem shortOfMemory(uint64_t seed,
                             const RandomProblemOptions &options) {
  Problem problem = randomProblem(seed, options);
  uint64_t sum = 0;
  for (ProblemBuffer &buffer : problem.buffers) {
    buffer.device = 0;
    buffer.isKept = buffer.isKept && seed % 3 == 0;
    sum += buffer.bytes;
  }
  problem.devices[0].memoryBytes =
      problem.devices[0].residentBytes + sum * (2 + seed % 7) / 10;
  return problem;
}

TEST(Bound, OfMemoryNeverExceedsTheLeastMakespanWithinIt) {
  const RandomProblemOptions kinds[] = {
      {6, 6, 1, false, 6}, {6, 6, 1, false, 3}, {6, 1, 1, true, 8}};
  int byMemory = 0, equal = 0;
  for (const RandomProblemOptions &options : kinds)
    for (uint64_t seed = 1; seed <= sweep(800, 20000); ++seed) {
      Problem problem = shortOfMemory(seed, options);
      Problem unlimited = problem;
      for (ProblemDevice &device : unlimited.devices)
        device.memoryBytes = UINT64_MAX;
      const Certificate certificate = makespanBound(problem);
      Result<void> verdict = check(certificate, problem);
      ASSERT_TRUE(verdict) << seed << ": " << verdict.error().message;
      const double least = leastMakespanWithin(problem);
      ASSERT_LE(certificate.boundUs, least + 1e-9) << seed;
      ASSERT_GE(certificate.boundUs, makespanBound(unlimited).boundUs - 1e-9);
      if (least == 1e9 || argumentOf(certificate) != BoundArgument::Memory)
        continue;
      ++byMemory;
      equal += certificate.boundUs > least - 1e-9;
      EXPECT_FALSE(explainBound(certificate, problem).empty());
      // Without the limit nothing of that is proven.
      EXPECT_FALSE(check(certificate, unlimited)) << seed;
    }
  EXPECT_GT(byMemory, 30);
  EXPECT_GT(equal, 5);
}

TEST(Bound, ArgumentsOfMemoryThatClaimMoreAreRejected) {
  int arguments = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Problem problem = shortOfMemory(seed, {8, 4, 1, false, 6});
    const Certificate good = makespanBound(problem);
    if (argumentOf(good) != BoundArgument::Memory)
      continue;
    ++arguments;
    const auto argument = std::get<MemoryArgument>(good.argument);
    auto refused = [&](auto change) {
      Certificate bad = good;
      MemoryArgument changed = argument;
      change(bad, changed);
      bad.argument = changed;
      return !check(bad, problem);
    };
    EXPECT_TRUE(refused([](auto &bad, auto &) { bad.boundUs += 1e-3; }));
    const uint64_t room = problem.devices[argument.device].memoryBytes -
                          problem.devices[argument.device].residentBytes;
    EXPECT_TRUE(refused([&](auto &, auto &of) { of.small = room / 2 + 1; }));
    EXPECT_TRUE(refused([&](auto &, auto &of) {
      of.device = uint32_t(problem.devices.size());
    }));
    for (uint32_t i = 0; i < problem.size(); ++i) {
      EXPECT_TRUE(refused([i](auto &bad, auto &) { bad.heads[i].us += 1; }));
      EXPECT_TRUE(refused([i](auto &bad, auto &) { bad.tails[i].us += 1; }));
    }
    // One buffer less, or more room, and it proves no more.
    Problem other = problem;
    ++other.devices[argument.device].memoryBytes;
    for (ProblemBuffer &buffer : other.buffers)
      buffer.bytes /= 2;
    EXPECT_FALSE(check(good, other)) << seed;
    // It reads back as it is, and what is cut short does not.
    std::string text = toText(std::vector<Certificate>{good});
    Result<std::vector<Certificate>> back = parseCertificates(text);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(toText(*back), text);
    EXPECT_TRUE(check(back->front(), problem));
    text.replace(text.find(" small "), 7, " large ");
    EXPECT_FALSE(parseCertificates(text));
  }
  EXPECT_GT(arguments, 20);
}

TEST(Bound, SaysWhatProvesIt) {
  auto argument = [](std::vector<double> durations,
                     std::vector<Rows<ResourceUse>::Entry> uses,
                     std::vector<std::pair<uint32_t, uint32_t>> edges,
                     double bound) {
    Problem problem =
        *Problem::create({durations, {"a", "b", "c"}, uses, edges, {}, {}, {}});
    Certificate certificate = makespanBound(problem);
    EXPECT_EQ(certificate.boundUs, bound);
    EXPECT_FALSE(explainBound(certificate, problem).empty());
    return argumentOf(certificate);
  };
  EXPECT_EQ(argument({3, 4}, {{0, {0}}, {1, {0}}}, {}, 7), BoundArgument::Work);
  EXPECT_EQ(argument({3, 4}, {{0, {0}}, {1, {1}}}, {{0, 1}}, 7),
            BoundArgument::CriticalPath);
  // Both nodes of `a` precede the one on `b`.
  EXPECT_EQ(
      argument({3, 4, 5}, {{0, {0}}, {1, {0}}, {2, {1}}}, {{0, 2}, {1, 2}}, 12),
      BoundArgument::StreamHeads);
  // Two nodes on `b`; each waits for 2 us of another stream, and 1 us follows.
  EXPECT_EQ(
      argument({2, 2, 4, 4, 1, 1},
               {{0, {0}}, {1, {2}}, {2, {1}}, {3, {1}}, {4, {0}}, {5, {2}}},
               {{0, 2}, {1, 3}, {2, 4}, {3, 5}}, 11),
      BoundArgument::StreamSet);
}

TEST(Bound, IsOfPathsAndWorkWhereAncestorsAreTooMany) {
  // A chain that alternates between two streams, beside one long node.
  const uint32_t nodes = maxStreamHeadNodes + 1;
  Problem::Description description;
  description.resources = {"a", "b"};
  for (uint32_t i = 0; i < nodes; ++i) {
    description.durations.push_back(i + 1 == nodes ? 10 : 1);
    description.uses.push_back({i, {i % 2, 1}});
    if (i > 0 && i + 1 < nodes)
      description.precedences.push_back({i - 1, i});
  }
  Problem problem = *Problem::create(std::move(description));
  Certificate certificate = makespanBound(problem);
  EXPECT_EQ(certificate.boundUs, nodes - 1);
  EXPECT_TRUE(check(certificate, problem));
  EXPECT_EQ(argumentOf(certificate), BoundArgument::CriticalPath);
  EXPECT_NE(explainBound(certificate, problem).find("longest paths alone"),
            std::string::npos);
}

TEST(Bound, ProblemsThatMakeNoSenseAreRefused) {
  Problem::Description good{{1, 2},   {"a"},           {{0, {0, 1}}}, {{0, 1}},
                            {{0, 8}}, {{0, 4, false}}, {{0, 1}}};
  EXPECT_TRUE(Problem::create(good));
  auto refused = [&](auto change) {
    Problem::Description bad = good;
    change(bad);
    return !Problem::create(bad);
  };
  EXPECT_TRUE(refused([](auto &p) { p.durations[0] = -1; }));
  EXPECT_TRUE(refused([](auto &p) { p.durations[1] = std::nan(""); }));
  EXPECT_TRUE(refused([](auto &p) { p.uses[0].second.share = 1.5; }));
  EXPECT_TRUE(refused([](auto &p) { p.uses[0].second.share = 0; }));
  EXPECT_TRUE(refused([](auto &p) { p.uses[0].second.resource = 1; }));
  EXPECT_TRUE(refused([](auto &p) { p.uses.push_back(p.uses[0]); }));
  EXPECT_TRUE(refused([](auto &p) { p.precedences[0] = {1, 0}; }));
  EXPECT_TRUE(refused([](auto &p) { p.precedences[0] = {0, 2}; }));
  EXPECT_TRUE(refused([](auto &p) { p.users.clear(); }));
  EXPECT_TRUE(refused([](auto &p) { p.buffers[0].device = 1; }));
}
