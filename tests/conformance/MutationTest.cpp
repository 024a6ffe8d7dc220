// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Damaged programs: import refuses them with a diagnostic, or makes a DAG that
// can be planned and verified. It never crashes and never runs without end.
#include "tests/conformance/ExampleProgram.h"
#include "tests/conformance/Execute.h"
#include "tests/conformance/Import.h"

#include "planner/plan/Verify.h"
#include "support/FileIO.h"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <random>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

struct Source {
  const char *name, *entry;
  uint32_t numMutants;
  std::map<std::string, std::string> scalars;
};

/// Else the name of each test would hold the addresses of this run.
void PrintTo(const Source &shown, std::ostream *os) { *os << shown.name; }

class Mutator {
public:
  explicit Mutator(uint64_t seed) : random(seed) {}
  std::string mutate(const std::string &text);

private:
  size_t below(size_t n) { return size_t(random() % n); }
  using Token = std::pair<size_t, size_t>; ///< first, length
  static std::vector<Token> tokens(const std::string &line);
  void replaceToken(std::vector<std::string> &lines);

  std::mt19937_64 random;
};

bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%' ||
         c == '.' || c == '!' || c == '#' || c == '@' || c == '-';
}

std::vector<Mutator::Token> Mutator::tokens(const std::string &line) {
  std::vector<Token> found;
  for (size_t at = 0; at < line.size();) {
    size_t first = at;
    while (at < line.size() && isWord(line[at]))
      ++at;
    if (at > first)
      found.push_back({first, at - first});
    else
      ++at;
  }
  return found;
}

/// Another word of the same kind from anywhere in the program, or a number at
/// the edge of what a type holds.
void Mutator::replaceToken(std::vector<std::string> &lines) {
  std::string &line = lines[below(lines.size())];
  std::vector<Token> words = tokens(line);
  if (words.empty())
    return;
  Token old = words[below(words.size())];
  char kind = line[old.first];
  std::string fresh;
  if (std::isdigit(static_cast<unsigned char>(kind)) || kind == '-' ||
      below(8) == 0) {
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "7",
                                          "1024",
                                          "4294967296",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "1.0",
                                          "?",
                                          "memref<?xf32>",
                                          "index",
                                          "f64",
                                          "i1",
                                          "memref<0xf32>",
                                          "memref<4xf32>",
                                          "2147483648"};
    fresh = numbers[below(std::size(numbers))];
  } else {
    for (int attempt = 0; attempt < 50 && fresh.empty(); ++attempt) {
      const std::string &other = lines[below(lines.size())];
      std::vector<Token> others = tokens(other);
      if (others.empty())
        continue;
      Token from = others[below(others.size())];
      if (other[from.first] == kind)
        fresh = other.substr(from.first, from.second);
    }
  }
  line.replace(old.first, old.second, fresh);
}

std::string Mutator::mutate(const std::string &text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  for (size_t count = 1 + below(2); count > 0; --count) {
    size_t a = below(lines.size()), b = below(lines.size());
    switch (below(8)) {
    case 0:
      lines.erase(lines.begin() + long(a));
      break;
    case 1:
      lines.insert(lines.begin() + long(a), std::string(lines[b]));
      break;
    case 2:
      std::swap(lines[a], lines[b]);
      break;
    default:
      replaceToken(lines);
    }
  }
  std::string mutated;
  for (const std::string &line : lines)
    mutated += line + "\n";
  return mutated;
}

class Mutants : public testing::TestWithParam<Source> {};

TEST_P(Mutants, AreRefusedOrPlanned) {
  const Source &source = GetParam();
  std::string path =
      examplesFolder() + "/" + source.name + "/" + source.name + ".mlir";
  auto file = readFile(path);
  ASSERT_TRUE(file) << file.error().message;
  std::string text(reinterpret_cast<const char *>(file->data()), file->size());
  const char *scale = std::getenv("MGPU_MUTANTS_SCALE");
  const char *keep = std::getenv("MGPU_MUTANT_FILE");
  uint64_t count =
      source.numMutants * (scale ? std::strtoull(scale, nullptr, 10) : 1);
  Importer importer;
  uint32_t numAccepted = 0, numParsed = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    ImportRequest request;
    request.text = Mutator(seed).mutate(text);
    request.name = source.name;
    request.entry = source.entry;
    request.scalars = source.scalars;
    request.nodeLimit = 2000;
    if (keep) // what crashed is what it holds
      std::ofstream(keep) << "// seed " << seed << "\n" << request.text;
    SCOPED_TRACE("mutant " + std::to_string(seed) + " of " + path);
    ImportOutcome outcome = importer.import(request);
    if (!outcome.dag) {
      numParsed += outcome.dag.error().message != "it does not parse";
      EXPECT_FALSE(outcome.dag.error().message.empty());
      // A missing scalar or entry is about the command, not about a line.
      if (outcome.dag.error().kind != ErrorKind::Usage) {
        ASSERT_FALSE(outcome.errors.empty()) << outcome.dag.error().message;
      }
      continue;
    }
    ++numAccepted;
    ASSERT_TRUE(outcome.errors.empty()) << outcome.errors[0];
    auto legal = outcome.dag->check();
    ASSERT_TRUE(legal) << legal.error().message;
    for (const char *scheduler : {"serial", "list", "1"}) {
      auto plan = makePlan(*outcome.dag, scheduler);
      ASSERT_TRUE(plan) << scheduler << ": " << plan.error().message;
    }
  }
  printf("%u planned, %u refused by import, of %u\n", numAccepted, numParsed,
         unsigned(count));
  EXPECT_GT(numAccepted, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, Mutants,
    testing::Values(Source{"saxpy", "main", 600, {{"a", "2.5"}}},
                    Source{"heat", "main", 200, {}},
                    Source{"mandelbrot", "main", 400, {}},
                    Source{"mlp", "main", 400, {}},
                    Source{"ops", "main", 600, {}},
                    Source{"digits", "main", 150, {{"rate", "0.5"}}}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
