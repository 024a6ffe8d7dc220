// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bundles whose contents are wrong and whose seals and hashes are right: words,
// numbers and lines of the program's text, of its plan and of what is said of
// its kernels are exchanged. Opening one is an error or gives a program that
// can be planned, explained and replayed without leaving its buffers; one that
// says what it said before gives the same bits. Usage: fuzz_bundles OPS.mgpu
// SECONDS [FIRST_SEED]
#include "db/BundleStore.h"
#include "pipeline/c/mgt.hpp"

#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <unistd.h>

using namespace mgpu;

namespace {

using Blobs = std::map<std::string, std::vector<std::byte>>;

constexpr int64_t rows = 4, columns = 4;

/// Copies and collectives of every kind, a loop, an argument on a device, a
/// constant: no kernel, so what it does is all ours.
void writePlain(const std::string &path) {
  mgt::Builder builder("plain", 2);
  const std::vector<int64_t> shape{rows, columns};
  const auto x = builder.argument("x", shape), y = builder.result("y", shape),
             w = builder.argument("w", shape, "f32", "resident");
  const std::vector<float> ones(rows * columns, 1);
  mgt_buffer_spec spec{};
  spec.name = "ones";
  spec.kind = MGT_CONSTANT;
  spec.device = MGT_HOST;
  spec.contents = ones.data();
  const auto constant = builder.buffer(spec, shape);
  spec = {};
  spec.name = "outside";
  spec.kind = MGT_EXTERNAL;
  const auto outside = builder.buffer(spec, shape);
  std::vector<mgt::View> a, b;
  for (int32_t d : {0, 1}) {
    a.push_back(builder.temporary("a", d, shape));
    b.push_back(builder.temporary("b", d, shape));
    builder.copy(a.back(), x);
    builder.copy(b.back(), d ? constant : w);
  }
  builder.copy(outside, a[0]);
  mgt_buffer value = 0;
  mgt::check(mgt_builder_begin_loop(builder.get(), 3, 1, 2, &value));
  builder.allReduce(a);
  builder.copy(b[0], a[0]);
  mgt::check(mgt_builder_end_loop(builder.get()));
  std::vector<mgt::View> halves;
  for (const mgt::View &each : b)
    halves.push_back(each.part({0, 0}, {rows / 2, columns}));
  mgt_collective_spec kinds{};
  kinds.kind = MGT_REDUCE_SCATTER;
  builder.collective(kinds, a, halves);
  kinds.kind = MGT_ALL_GATHER;
  builder.collective(kinds, halves, a);
  kinds.kind = MGT_ALL_TO_ALL;
  builder.collective(kinds, a, b);
  kinds.kind = MGT_BROADCAST;
  builder.collective(kinds, b);
  const uint32_t pairs[] = {0, 1, 1, 0};
  kinds.kind = MGT_PERMUTE;
  kinds.num_pairs = 2;
  kinds.pairs = pairs;
  builder.collective(kinds, b, a);
  builder.copy(y, a[1]);
  builder.save(path);
}

struct Base {
  db::BundleRecord record;
  Blobs blobs;
  bool isPlain = false; ///< has no kernels, so any text of it may run
};

Base readBase(const std::string &path, bool isPlain) {
  auto store = db::BundleStore::open(path);
  if (!store)
    std::fprintf(stderr, "%s\n", store.error().message.c_str()), std::exit(1);
  Base base{store->record(), {}, isPlain};
  auto take = [&](const std::string &hash) {
    if (auto bytes = store->blob(hash))
      base.blobs[hash] = *bytes;
  };
  for (const db::ImageRecord &image : base.record.images)
    take(image.blob);
  // And what the text names: 64 hexadecimal digits.
  const std::string &text = base.record.program.text;
  for (size_t at = 0, run = 0; at <= text.size(); ++at) {
    if (at < text.size() && std::isxdigit(static_cast<unsigned char>(text[at])))
      ++run;
    else {
      if (run == 64)
        take(text.substr(at - 64, 64));
      run = 0;
    }
  }
  return base;
}

class Mutator {
public:
  explicit Mutator(uint64_t seed) : random(seed) {}

  void change(std::string &text) {
    for (size_t k = 1 + pick(3); k-- > 0;)
      changeOnce(text);
  }
  size_t pick(size_t below) { return below ? random() % below : 0; }

private:
  void changeOnce(std::string &text) {
    std::vector<std::string> lines{""};
    for (char c : text)
      c == '\n' ? void(lines.emplace_back()) : lines.back().push_back(c);
    const size_t a = pick(lines.size()), b = pick(lines.size());
    switch (pick(8)) {
    case 0:
      lines.erase(lines.begin() + ptrdiff_t(a));
      break;
    case 1:
      lines.insert(lines.begin() + ptrdiff_t(b), lines[a]);
      break;
    case 2:
      std::swap(lines[a], lines[b]);
      break;
    case 3: // a word of another line
      exchange(lines[a], word(lines[b]));
      break;
    default:
      number(lines[a]);
    }
    text.clear();
    for (const std::string &line : lines)
      text += line + "\n";
    if (!text.empty())
      text.pop_back();
  }
  /// Where words of a line begin, and how long they are.
  std::vector<std::pair<size_t, size_t>> wordsOf(const std::string &line,
                                                 bool isNumber) {
    std::vector<std::pair<size_t, size_t>> found;
    auto belongs = [&](char c) {
      return isNumber ? std::isdigit(static_cast<unsigned char>(c)) != 0
                      : c != ' ';
    };
    for (size_t at = 0; at < line.size();) {
      size_t end = at;
      while (end < line.size() && belongs(line[end]))
        ++end;
      if (end > at)
        found.emplace_back(at, end - at);
      at = end + 1;
    }
    return found;
  }
  std::string word(const std::string &line) {
    const auto words = wordsOf(line, false);
    if (words.empty())
      return "";
    const auto [at, size] = words[pick(words.size())];
    return line.substr(at, size);
  }
  void exchange(std::string &line, const std::string &by) {
    const auto words = wordsOf(line, false);
    if (words.empty())
      return;
    const auto [at, size] = words[pick(words.size())];
    line.replace(at, size, by);
  }
  void number(std::string &line) {
    static const char *const odd[] = {"0",
                                      "1",
                                      "-1",
                                      "2",
                                      "3",
                                      "4",
                                      "8",
                                      "16",
                                      "255",
                                      "65536",
                                      "4294967295",
                                      "99999999",
                                      "9223372036854775807"};
    const auto numbers = wordsOf(line, true);
    if (numbers.empty())
      return;
    const auto [at, size] = numbers[pick(numbers.size())];
    line.replace(at, size, odd[pick(std::size(odd))]);
  }

  std::mt19937_64 random;
};

/// Whether a replay stays short: sizes multiply, and strides may be 0.
bool isSmall(const std::string &text) {
  double product = 1, total = 0, number = 0;
  size_t digits = 0;
  bool isFactor = false;
  for (char c : text + "\n") {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      number = number * 10 + (c - '0');
      ++digits;
      continue;
    }
    if (digits > 0 && number > 1e6)
      return false;
    if (digits > 0 && (isFactor || c == '*'))
      product *= std::max(number, 1.0);
    if (c == ' ' || c == '\n')
      total += product, product = 1;
    isFactor = c == '+';
    number = 0, digits = 0;
  }
  return total < 1e7;
}

std::atomic<size_t> numOpened = 0, numRefused = 0, numReplayed = 0;

[[noreturn]] void fail(uint64_t seed, const char *what) {
  std::fprintf(stderr, "seed %llu: %s: %s\n",
               static_cast<unsigned long long>(seed), what, mgt_error());
  std::abort();
}

/// All outputs, after two replays; empty where something was refused.
std::string replay(mgt_program *program, uint64_t seed) {
  std::string out;
  auto ok = [&](mgt_status status) {
    if (status == MGT_INTERNAL || status == MGT_LOST || status > MGT_LOST)
      fail(seed, "a replay");
    return status == MGT_OK;
  };
  std::vector<mgt_argument> arguments(mgt_num_arguments(program));
  for (size_t k = 0; k < arguments.size(); ++k)
    if (!ok(mgt_get_argument(program, k, &arguments[k])) ||
        arguments[k].bytes > (1 << 20))
      return "";
  for (const mgt_argument &each : arguments) {
    std::string data(each.bytes, '\x3f'); // of floats 0.747
    if (!each.is_result &&
        !ok(mgt_write(program, each.name, data.data(), data.size())))
      return "";
  }
  if (!ok(mgt_load(program)) || !ok(mgt_replay(program)) ||
      !ok(mgt_replay(program)) || !ok(mgt_fetch(program)))
    return "";
  for (const mgt_argument &each : arguments) {
    std::string data(each.bytes, '\0');
    if (!ok(mgt_read(program, each.name, data.data(), data.size())))
      return "";
    out += data;
  }
  ++numReplayed;
  return out;
}

void tryOne(const Base &base, const std::string &path, uint64_t seed,
            const std::string &expected) {
  Mutator mutator(seed);
  Base changed = base;
  const size_t which = mutator.pick(4);
  if (which <= 1)
    mutator.change(changed.record.program.text);
  else if (which == 2)
    mutator.change(changed.record.plans[0].text);
  else if (!changed.record.images.empty())
    mutator.change(
        changed.record.images[mutator.pick(changed.record.images.size())]
            .facts);
  if (!db::writeBundle(path, changed.record, changed.blobs))
    return; // two rows of one key
  mgt_program *program = nullptr;
  const mgt_status status = mgt_open(path.c_str(), "host:4", &program);
  if (status == MGT_INTERNAL || status > MGT_UNSUPPORTED ||
      (status == MGT_OK) != (program != nullptr))
    fail(seed, "opening");
  if (!program) {
    ++numRefused;
    if (!*mgt_error())
      fail(seed, "no sentence");
    return;
  }
  ++numOpened;
  const char *text = nullptr;
  if (mgt_explain(program, &text) != MGT_OK ||
      mgt_plan_text(program, &text) != MGT_OK)
    fail(seed, "explaining");
  const bool isSame = changed.record.program.text == base.record.program.text;
  // Kernels are code: with another text they might be given what they leave.
  if (isSame || (base.isPlain && isSmall(changed.record.program.text))) {
    const std::string found = replay(program, seed);
    if (isSame && found != expected)
      fail(seed, "other bits");
  }
  mgt_close(program);
}

} // namespace

int main(int argc, char **argv) try {
  if (argc < 3)
    return std::fprintf(stderr,
                        "usage: fuzz_bundles OPS.mgpu SECONDS [FIRST_SEED]\n"),
           2;
  char folder[] = "/tmp/mgpu-fuzz-XXXXXX";
  if (!mkdtemp(folder))
    return 1;
  const std::string plain = std::string(folder) + "/plain.mgpu",
                    path = std::string(folder) + "/changed.mgpu";
  writePlain(plain);
  const Base bases[] = {readBase(plain, true), readBase(argv[1], false)};
  std::string expected[2];
  for (int k : {0, 1}) {
    mgt::Program program(k == 0 ? plain : argv[1], "host:4");
    expected[k] = replay(program.get(), 0);
  }
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const double seconds = std::atof(argv[2]);
  const uint64_t first = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
  uint64_t count = 0;
  // A slow machine does the first ones at least.
  for (; count < 60 ||
         std::chrono::duration<double>(Clock::now() - start).count() < seconds;
       ++count) {
    const int which = (first + count) % 4 == 3;
    tryOne(bases[which], path, first + count, expected[which]);
  }
  unlink(path.c_str()), unlink(plain.c_str()), rmdir(folder);
  std::printf("%llu bundles: %zu refused, %zu opened, %zu replayed\n",
              static_cast<unsigned long long>(count), numRefused.load(),
              numOpened.load(), numReplayed.load());
  // One that is refused everything, or nothing, finds nothing.
  return numRefused > count / 10 && numReplayed > count / 50 ? 0 : 1;
} catch (const mgt::Error &error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
